/**
 * The facts behind the condition `serving` of a pod, as an annotation that the agent writes in the same request. The
 * message of the condition is for people.
 */
import type { Pod } from '../kube/resources.ts'
import { prefix } from './labels.ts'
import { legacyRecord } from './legacy-serving.ts'
import { type BroughtBack, type LeftMemory, podConditions, type ServingRecord } from './pod-contract.ts'
import { objectIn } from './unknown.ts'

export const servingRecordAnnotation = `${prefix}serving-record`

const version = 1

/** Characters. Readers parse a record at each look at its pod. The policy `understudy-marks` repeats this number. */
export const longestRecord = 16_384

/**
 * Returns the text of the annotation; undefined if no reader would accept it, as for a pod with more than 50 containers.
 *
 * @param message of the condition, by which a reader notices that an agent of an earlier version has written the condition
 * since, without the annotation.
 */
export function formatServingRecord(record: ServingRecord, message: string): string | undefined {
  const text = JSON.stringify({ version, ...record, message })
  return text.length > longestRecord ? undefined : text
}

/** Returns the facts behind the condition `serving` of a pod; empty if it has no such condition, or says nothing more. */
export function servingRecordOf(pod: Pod): ServingRecord {
  const message = messageOf(pod)
  if (message === undefined) return {}
  const given = recordedFor(pod, message)
  return given === undefined ? legacyRecord(message) : recordIn(given)
}

/**
 * Returns the annotation of a pod whose facts only the message of its condition has, as the version before wrote them;
 * undefined: nothing is missing.
 */
export function missingRecordOf(pod: Pod): string | undefined {
  const message = messageOf(pod)
  if (message === undefined || recordedFor(pod, message) !== undefined) return undefined
  const record = legacyRecord(message)
  return Object.keys(record).length === 0 ? undefined : formatServingRecord(record, message)
}

const messageOf = ({ status }: Pod): string | undefined => {
  const condition = status?.conditions?.find(({ type }) => type === podConditions.serving)
  return condition && (condition.message ?? '')
}

/** Returns the pod's annotation, unless it belongs to an earlier condition. */
function recordedFor({ metadata }: Pod, message: string): Readonly<Record<string, unknown>> | undefined {
  const given = parse(metadata.annotations?.[servingRecordAnnotation])
  return given?.['message'] === message ? given : undefined
}

function parse(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined || text.length > longestRecord) return undefined
  try {
    const given = objectIn(JSON.parse(text))
    return given['version'] === version ? given : undefined
  } catch {
    // An administrator has edited it.
    return undefined
  }
}

function recordIn(given: Readonly<Record<string, unknown>>): ServingRecord {
  const ids = Object.entries(objectIn(given['containers'])).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  const memory = memoryIn(given['memory'])
  const left = leftIn(given['left'])
  const { diedWith, byItself } = given
  return {
    ...(ids.length > 0 && { containers: Object.fromEntries(ids) }),
    ...(memory && { memory }),
    ...(typeof diedWith === 'string' && { diedWith }),
    ...(byItself === false && { byItself }),
    ...(left && { left }),
  }
}

function memoryIn(given: unknown): BroughtBack | undefined {
  const { generation, takenAt } = objectIn(given)
  if (typeof takenAt !== 'string' || Number.isNaN(Date.parse(takenAt))) return undefined
  return isCount(generation) ? { generation, takenAt } : undefined
}

function leftIn(given: unknown): LeftMemory | undefined {
  const memory = memoryIn(given)
  const { epoch, usable, at } = objectIn(given)
  if (memory === undefined || memory.generation < 1 || !isCount(epoch) || !isCount(at)) return undefined
  return usable === 'Staged' || usable === 'Cold' ? { ...memory, epoch, usable, at } : undefined
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
