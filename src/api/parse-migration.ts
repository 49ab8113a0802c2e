import type { Refusal } from './errors.ts'
import { parseDuration } from './memory.ts'
import {
  connectionsRefusal,
  copyRefusal,
  type Migration,
  type MigrationPriority,
  type MigrationTechnique,
  migrationDefaults,
  migrationLimits,
  migrationPriorities,
  migrationTechniques,
  transferRefusal,
} from './migration.ts'
import { reader } from './reader.ts'
import { isSet } from './unknown.ts'

export interface ParsedMigration {
  readonly source: { readonly name: string; readonly uid: string | undefined }
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly priority: MigrationPriority
  /** Undefined: however long. */
  readonly maxDowntimeMs: number | undefined
  readonly technique: MigrationTechnique
  readonly unschedulableMs: number
  readonly pendingMs: number
  /** Undefined: until enough later ones have ended. */
  readonly ttlMs: number | undefined
}

export type ParsedOrRefused =
  | { readonly ok: true; readonly wish: ParsedMigration }
  | ({ readonly ok: false } & Refusal)

const supported = [
  ['transfer', 'Direct', transferRefusal],
  ['copy', 'PreCopy', copyRefusal],
  ['connections', 'Close', connectionsRefusal],
] as const

const downtimeForm = 'a duration from 10ms to 10m'

/** Parses the spec of a Migration. Never throws: it may have been stored under another schema. */
export function parseMigration({ spec: given }: Pick<Migration, 'spec'>): ParsedOrRefused {
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', given)
  const source = read.object('spec.source', spec['source'])
  const name = read.text('spec.source.name', source['name'], { min: 1, max: 253 }, '')
  if (!isSet(source['name'])) read.invalid('spec.source.name', undefined, 'the name of the pod that moves')
  const uid = read.text('spec.source.uid', source['uid'], { min: 1, max: 64 }, '')
  const { timeout, ttl, maxDowntime } = migrationLimits
  const { unschedulableTimeoutSeconds, pendingTimeoutSeconds, priority } = migrationDefaults
  const seconds = (key: string, otherwise: number) =>
    read.integer(`spec.${key}`, spec[key], timeout, otherwise) * 1000
  const urgency = read.oneOf('spec.priority', spec['priority'], migrationPriorities, priority)
  const ttlGiven = spec['ttlSecondsAfterFinished']
  const wish: ParsedMigration = {
    source: { name, uid: uid || undefined },
    nodeSelector: labelsIn(read.object('spec.addedNodeSelector', spec['addedNodeSelector'])),
    priority: urgency,
    maxDowntimeMs: isSet(spec['maxDowntime'])
      ? read.measure('spec.maxDowntime', spec['maxDowntime'], parseDuration, maxDowntime, downtimeForm)
      : undefined,
    technique: read.oneOf(
      'spec.technique',
      spec['technique'],
      migrationTechniques,
      urgency === 'SystemCritical' ? 'LiveIfPossible' : 'Live',
    ),
    unschedulableMs: seconds('unschedulableTimeoutSeconds', unschedulableTimeoutSeconds),
    pendingMs: seconds('pendingTimeoutSeconds', pendingTimeoutSeconds),
    ttlMs: isSet(ttlGiven)
      ? read.integer('spec.ttlSecondsAfterFinished', ttlGiven, ttl, 0) * 1000
      : undefined,
  }
  // Stored under a schema without these rules.
  for (const [key, only, message] of supported)
    if (isSet(spec[key]) && spec[key] !== only)
      refused.push({ code: 'InvalidValue', field: `spec.${key}`, message })
  const [first] = refused
  return first === undefined ? { ok: true, wish } : { ok: false, ...first }
}

const labelsIn = (given: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(given).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  )
