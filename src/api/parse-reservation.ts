import type { Refusal } from './errors.ts'
import { parseDuration } from './memory.ts'
import { type Reader, reader } from './reader.ts'
import {
  type NodeRequirement,
  type NodeTerm,
  type Placement,
  type Reservation,
  reservationLimits,
  selectorOperators,
  type Toleration,
  taintEffects,
  tolerationOperators,
} from './reservation.ts'
import { isSet, objectIn, objectsIn, textsIn } from './unknown.ts'

export interface ParsedReservation {
  readonly placement: Placement
  readonly owner: { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
  /** Ms since the epoch; undefined: never. */
  readonly expiresAt: number | undefined
}

export type ParsedReservationOrRefused =
  | { readonly ok: true; readonly reservation: ParsedReservation }
  | ({ readonly ok: false } & Refusal)

/** Parses a Reservation. Never throws: it may have been stored under another schema. */
export function parseReservation({
  metadata,
  spec: given,
}: Pick<Reservation, 'metadata' | 'spec'>): ParsedReservationOrRefused {
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', given)
  if (spec['allocateOnce'] === false)
    read.invalid('spec.allocateOnce', false, 'true: a reservation is for one pod')
  const template = read.object('spec.template', spec['template'])
  const reservation: ParsedReservation = {
    placement: placementIn(read, 'spec.template.spec', template['spec']),
    owner: ownerIn(read, spec['owners']),
    expiresAt: expiryIn(read, spec, Date.parse(metadata.creationTimestamp ?? '')),
  }
  const [first] = refused
  return first === undefined ? { ok: true, reservation } : { ok: false, ...first }
}

function ownerIn(read: Reader, value: unknown): ParsedReservation['owner'] {
  const [owner, second] = objectsIn(value)
  const { controller } = owner ?? {}
  const given = read.object('spec.owners[0].controller', controller)
  if (!isSet(controller) || second !== undefined)
    read.invalid('spec.owners', value, 'one owner, with the ReplicaSet of the pod as its controller')
  const { kind } = given
  if (isSet(kind) && kind !== 'ReplicaSet') read.invalid('spec.owners[0].controller.kind', kind, 'ReplicaSet')
  const text = (key: string, max: number) => {
    if (isSet(controller) && !isSet(given[key]))
      read.invalid(`spec.owners[0].controller.${key}`, undefined, `the ${key} of the ReplicaSet`)
    return read.text(`spec.owners[0].controller.${key}`, given[key], { min: 1, max }, '')
  }
  const uid = read.text('spec.owners[0].controller.uid', given['uid'], { min: 1, max: 64 }, '')
  return { namespace: text('namespace', 63), name: text('name', 253), uid: uid || undefined }
}

function expiryIn(
  read: Reader,
  spec: Readonly<Record<string, unknown>>,
  createdAt: number,
): number | undefined {
  const { expires, ttl } = spec
  if (isSet(expires)) {
    const at = Date.parse(String(expires))
    if (Number.isNaN(at)) read.invalid('spec.expires', expires, 'a time such as 2030-01-01T00:00:00Z')
    return at
  }
  const { ttl: bounds, defaultTtlMs } = reservationLimits
  const ttlMs = isSet(ttl)
    ? read.measure('spec.ttl', ttl, parseDuration, bounds, 'a duration from 0s to 720h')
    : defaultTtlMs
  return ttlMs === 0 || Number.isNaN(createdAt) ? undefined : createdAt + ttlMs
}

/** Reads where a pod may run. */
export function placementIn(read: Reader, name: string, value: unknown): Placement {
  const given = read.object(name, value)
  const nodeName = read.text(`${name}.nodeName`, given['nodeName'], { min: 1, max: 253 }, '')
  const selector = Object.entries(read.object(`${name}.nodeSelector`, given['nodeSelector']))
  const nodeSelector = selector.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  if (nodeSelector.length < selector.length)
    read.invalid(`${name}.nodeSelector`, given['nodeSelector'], 'labels, with a text each')
  const { nodeAffinity } = objectIn(given['affinity'])
  const required = objectIn(objectIn(nodeAffinity)['requiredDuringSchedulingIgnoredDuringExecution'])
  const nodeSelectorTerms = objectsIn(required['nodeSelectorTerms']).map(term => termIn(read, name, term))
  const tolerations = objectsIn(given['tolerations']).map(each => tolerationIn(read, name, each))
  return {
    ...(nodeName !== '' && { nodeName }),
    ...(nodeSelector.length > 0 && { nodeSelector: Object.fromEntries(nodeSelector) }),
    ...(nodeSelectorTerms.length > 0 && {
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
      },
    }),
    ...(tolerations.length > 0 && { tolerations }),
  }
}

function termIn(read: Reader, name: string, term: Readonly<Record<string, unknown>>): NodeTerm {
  const requirements = (key: string) =>
    objectsIn(term[key]).map((each): NodeRequirement => {
      const field = `${name}.affinity: ${key}`
      if (!isSet(each['operator']))
        read.invalid(`${field}.operator`, undefined, `one of ${selectorOperators.join(', ')}`)
      const values = textsIn(each['values'])
      return {
        key: read.text(`${field}.key`, each['key'], { min: 1, max: 317 }, ''),
        operator: read.oneOf(`${field}.operator`, each['operator'], selectorOperators, 'In'),
        ...(values.length > 0 && { values }),
      }
    })
  return {
    ...(isSet(term['matchExpressions']) && { matchExpressions: requirements('matchExpressions') }),
    ...(isSet(term['matchFields']) && { matchFields: requirements('matchFields') }),
  }
}

function tolerationIn(read: Reader, name: string, given: Readonly<Record<string, unknown>>): Toleration {
  const text = (key: string) =>
    isSet(given[key])
      ? { [key]: read.text(`${name}.tolerations.${key}`, given[key], { min: 0, max: 317 }, '') }
      : {}
  const { operator, effect } = given
  const field = `${name}.tolerations`
  return {
    ...text('key'),
    ...text('value'),
    ...(isSet(operator) && {
      operator: read.oneOf(`${field}.operator`, operator, tolerationOperators, 'Equal'),
    }),
    ...(isSet(effect) && { effect: read.oneOf(`${field}.effect`, effect, taintEffects, 'NoSchedule') }),
  }
}
