import { apiVersionOf } from '../kube/resources.ts'
import { deleteOptionsIn } from './delete-options.ts'
import type { Refusal } from './errors.ts'
import { parseDuration } from './memory.ts'
import type { MigrationControllerArgs } from './migration-controller-args.ts'
import { placementIn } from './parse-reservation.ts'
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
import { koordinatorReservations, type Placement, reservations } from './reservation.ts'
import { isSet, objectIn, textsIn } from './unknown.ts'

export interface ParsedJob {
  readonly isPaused: boolean
  readonly isAborted: boolean
  readonly ttlMs: number
  readonly mode: JobMode
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
  readonly deleteOptions: JobDeleteOptions | undefined
  /** The Reservation that the job uses, or will use; undefined: the operator creates one. */
  readonly reservationRef: JobReservationRef | undefined
  /** Pods of a lower priority may give way to the replacement. */
  readonly isPreempting: boolean
  /** Where the replacement may run, for the Reservation that the operator creates. With `Live` only its `nodeSelector`, for the Migration. */
  readonly placement: Placement
  readonly skipGates: ReadonlySet<SkipGate>
  /** Among pods of one class and priority, the higher one comes first. */
  readonly priority: number
}

export interface JobReservationRef {
  readonly group: string
  readonly name: string
  readonly uid: string | undefined
}

export type ParsedJobOrRefused =
  | { readonly ok: true; readonly job: ParsedJob }
  | ({ readonly ok: false } & Refusal)

/** Parses a job. Never throws: it may have been stored under another schema. */
export function parseJob(
  { metadata, spec: given }: Pick<PodMigrationJob, 'spec' | 'metadata'>,
  args: Pick<MigrationControllerArgs, 'defaultJobTtlMs' | 'defaultJobMode'>,
  group = reservations.group,
): ParsedJobOrRefused {
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', given)
  const ttlGiven = spec['ttl']
  const options = read.object('spec.reservationOptions', spec['reservationOptions'])
  const mode = modeIn(read, spec['mode'], args.defaultJobMode)
  const template = objectIn(objectIn(objectIn(options['template'])['spec'])['template'])
  const job: ParsedJob = {
    isPaused: read.flag('spec.paused', spec['paused'], false),
    isAborted: read.flag('spec.abort', spec['abort'], false),
    ttlMs: isSet(ttlGiven)
      ? read.measure('spec.ttl', ttlGiven, parseDuration, jobLimits.ttl, 'a duration from 1s to 24h')
      : args.defaultJobTtlMs,
    mode,
    pod: podIn(read, spec['podRef']),
    deleteOptions: isSet(spec['deleteOptions'])
      ? deleteOptionsIn(read, 'spec.deleteOptions', spec['deleteOptions'])
      : undefined,
    reservationRef: reservationIn(read, options['reservationRef'], group),
    isPreempting: isSet(options['preemptionOptions']),
    placement: placementIn(read, placementField, template['spec']),
    skipGates: gatesIn(read, spec),
    priority: int32In(metadata.annotations?.[migrationPriorityAnnotation]),
  }
  refuseUnused(read, job, { options, deleteOptions: spec['deleteOptions'] })
  const [first] = refused
  return first === undefined ? { ok: true, job } : { ok: false, ...first }
}

const placementField = 'spec.reservationOptions.template.spec.template.spec'

/** An option that has no effect in a mode would promise what the operator does not do. */
function refuseUnused(
  read: Reader,
  { mode, placement }: Pick<ParsedJob, 'mode' | 'placement'>,
  given: { readonly options: Readonly<Record<string, unknown>>; readonly deleteOptions: unknown },
): void {
  if (mode === 'ReservationFirst') return
  const unused = (name: string, value: unknown) => {
    if (isSet(value)) read.invalid(name, value, `nothing: leave it out with the mode ${mode}`)
  }
  for (const name of ['preemptionOptions', 'reservationRef'])
    unused(`spec.reservationOptions.${name}`, given.options[name])
  const { nodeSelector, ...others } = placement
  if (mode === 'Live') unused('spec.deleteOptions', given.deleteOptions)
  // A Migration has a selector of nodes as well.
  else unused(`${placementField}.nodeSelector`, nodeSelector)
  for (const [name, value] of Object.entries(others)) unused(`${placementField}.${name}`, value)
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

/** @param otherwise the group of the job, whose Reservations it means if it names none. */
function reservationIn(read: Reader, value: unknown, otherwise: string): JobReservationRef | undefined {
  if (!isSet(value)) return undefined
  const field = 'spec.reservationOptions.reservationRef'
  const ref = read.object(field, value)
  const text = (key: string, max: number) => read.text(`${field}.${key}`, ref[key], { min: 1, max }, '')
  if (!isSet(ref['name'])) read.invalid(`${field}.name`, undefined, 'the name of a Reservation')
  if (isSet(ref['kind']) && ref['kind'] !== 'Reservation')
    read.invalid(`${field}.kind`, ref['kind'], 'Reservation')
  const version = text('apiVersion', 64)
  const groups = [reservations, koordinatorReservations]
  const found = groups.find(each => apiVersionOf(each) === version)
  if (version !== '' && found === undefined)
    read.invalid(`${field}.apiVersion`, version, groups.map(apiVersionOf).join(' or '))
  return { group: found?.group ?? otherwise, name: text('name', 253), uid: text('uid', 64) || undefined }
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
