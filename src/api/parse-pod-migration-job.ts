import { deleteOptionsIn } from './delete-options.ts'
import type { Refusal } from './errors.ts'
import { parseDuration } from './memory.ts'
import type { MigrationControllerArgs } from './migration-controller-args.ts'
import {
  type JobDeleteOptions,
  type JobMode,
  jobLimits,
  jobModes,
  migrationPriorityAnnotation,
  type PodMigrationJob,
  type SkipGate,
  skipGates,
} from './pod-migration-job.ts'
import { type Reader, reader } from './reader.ts'
import { isSet, textsIn } from './unknown.ts'

export interface ParsedJob {
  readonly isPaused: boolean
  readonly isAborted: boolean
  readonly ttlMs: number
  readonly mode: JobMode
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
  readonly deleteOptions: JobDeleteOptions | undefined
  readonly skipGates: ReadonlySet<SkipGate>
  /** Among pods of one class and priority, the higher one comes first. */
  readonly priority: number
}

export type ParsedJobOrRefused =
  | { readonly ok: true; readonly job: ParsedJob }
  | ({ readonly ok: false } & Refusal)

/** Parses a job. Never throws: it may have been stored under another schema. */
export function parseJob(
  { metadata, spec: given }: Pick<PodMigrationJob, 'spec' | 'metadata'>,
  args: Pick<MigrationControllerArgs, 'defaultJobTtlMs' | 'defaultJobMode'>,
): ParsedJobOrRefused {
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', given)
  const ttlGiven = spec['ttl']
  const job: ParsedJob = {
    isPaused: read.flag('spec.paused', spec['paused'], false),
    isAborted: read.flag('spec.abort', spec['abort'], false),
    ttlMs: isSet(ttlGiven)
      ? read.measure('spec.ttl', ttlGiven, parseDuration, jobLimits.ttl, 'a duration from 1s to 24h')
      : args.defaultJobTtlMs,
    mode: modeIn(read, spec['mode'], args.defaultJobMode),
    pod: podIn(read, spec['podRef']),
    deleteOptions: isSet(spec['deleteOptions'])
      ? deleteOptionsIn(read, 'spec.deleteOptions', spec['deleteOptions'])
      : undefined,
    skipGates: gatesIn(read, spec),
    priority: int32In(metadata.annotations?.[migrationPriorityAnnotation]),
  }
  const [first] = refused
  return first === undefined ? { ok: true, job } : { ok: false, ...first }
}

function modeIn(read: Reader, value: unknown, otherwise: JobMode): JobMode {
  // The prose of Koordinator's page has this name, its API has the other one.
  if (value === 'EvictionDirectly') read.invalid('spec.mode', value, 'EvictDirectly')
  return value === 'EvictionDirectly' ? otherwise : read.oneOf('spec.mode', value, jobModes, otherwise)
}

function podIn(read: Reader, value: unknown): ParsedJob['pod'] {
  const ref = read.object('spec.podRef', value)
  const text = (key: string, max: number) => read.text(`spec.podRef.${key}`, ref[key], { min: 1, max }, '')
  for (const key of ['namespace', 'name'])
    if (!isSet(ref[key])) read.invalid(`spec.podRef.${key}`, undefined, `the ${key} of the pod`)
  if (isSet(ref['kind']) && ref['kind'] !== 'Pod') read.invalid('spec.podRef.kind', ref['kind'], 'Pod')
  return { namespace: text('namespace', 63), name: text('name', 253), uid: text('uid', 64) || undefined }
}

function gatesIn(read: Reader, spec: Readonly<Record<string, unknown>>): ReadonlySet<SkipGate> {
  const names = textsIn(spec['skipGates'])
  const gates = skipGates.filter(gate => names.includes(gate))
  if (gates.length < new Set(names).size)
    read.invalid('spec.skipGates', spec['skipGates'], `names of ${skipGates.join(', ')}`)
  const reason = read.text('spec.skipReason', spec['skipReason'], jobLimits.skipReason, '')
  if (gates.length > 0 && reason === '')
    read.invalid('spec.skipReason', spec['skipReason'], 'the reason for which gates are skipped')
  return new Set(gates)
}

/** Reads an int32 in its shortest form: no `+`, no leading zeros. Anything else counts as 0. */
export function int32In(text: string | undefined): number {
  if (text === undefined || !/^(0|-?[1-9]\d{0,9})$/.test(text)) return 0
  const value = Number(text)
  return value >= -2_147_483_648 && value <= 2_147_483_647 ? value : 0
}
