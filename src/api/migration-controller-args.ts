/** The configuration of the controller of PodMigrationJobs: MigrationControllerArgs, in a ConfigMap beside the operator. */
import { deleteOptionsIn } from './delete-options.ts'
import type { Refusal } from './errors.ts'
import { parseDuration } from './memory.ts'
import { type JobDeleteOptions, type JobMode, jobLimits, jobModes } from './pod-migration-job.ts'
import { type Reader, reader } from './reader.ts'
import { isSet, isText, textsIn } from './unknown.ts'

/** The ConfigMap in the operator's namespace, and its key. */
export const argsConfigMap = { name: 'understudy-migration-controller', key: 'args.yaml' } as const

/** A number of pods, or a part of the pods that a workload wants, in percent. */
export type IntOrPercent =
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'percent'; readonly value: number }

export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>
  readonly matchExpressions: readonly {
    readonly key: string
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
    readonly values: readonly string[]
  }[]
}

/**
 * `Eviction`: by the Eviction API, which asks the disruption budgets. `Delete`: by a plain deletion, which asks none. `SoftEviction`: an
 * annotation asks the pod's own controller to remove it.
 */
export const evictionPolicies = ['Eviction', 'Delete', 'SoftEviction'] as const
export type EvictionPolicy = (typeof evictionPolicies)[number]

/** `Up`: as Koordinator's design says. `Down`: as Koordinator does since, with at least one pod. */
export const roundings = ['Up', 'Down'] as const
/** `Design`: important pods first. `Koordinator`: unimportant ones first, as Koordinator does since. */
export const sortOrders = ['Design', 'Koordinator'] as const

export interface MigrationControllerArgs {
  readonly isEnabled: boolean
  readonly dryRun: boolean
  readonly evictFailedBarePods: boolean
  readonly evictLocalStoragePods: boolean
  readonly evictSystemCriticalPods: boolean
  readonly ignorePvcPods: boolean
  readonly skipCheckExpectedReplicas: boolean
  readonly labelSelector: LabelSelector | undefined
  /** Jobs that may begin: a second, and at once. Undefined: any number. */
  readonly flowControl: Rate | undefined
  /** Requests of evictions. */
  readonly evict: Rate
  /** Pods that may be under way at once. Undefined: any number. */
  readonly maxMigratingGlobally: number | undefined
  readonly maxMigratingPerNode: number | undefined
  readonly maxMigratingPerNamespace: number | undefined
  readonly maxMigratingPerWorkload: IntOrPercent | undefined
  readonly maxUnavailablePerWorkload: IntOrPercent | undefined
  readonly rounding: (typeof roundings)[number]
  readonly sortOrder: (typeof sortOrders)[number]
  readonly evictionPolicy: EvictionPolicy
  readonly defaultDeleteOptions: JobDeleteOptions | undefined
  /** Pods of other namespaces than the job's pod may give way, too. */
  readonly preemptOtherNamespaces: boolean
  readonly defaultJobMode: JobMode
  readonly defaultJobTtlMs: number
  readonly arbitrationIntervalMs: number
  /** Jobs that have ended are deleted after this time. Until then the order of arbitration counts them. */
  readonly finishedJobTtlMs: number
}

export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

export type ParsedArgs =
  | { readonly ok: true; readonly args: MigrationControllerArgs }
  | ({ readonly ok: false } & Refusal)

const rate = { min: 0.001, max: 10_000 }
const burst = { min: 1, max: 10_000 }
const pods = { min: 0, max: 1_000_000 }
const interval = { min: 100, max: 60_000 }
const retention = { min: 0, max: 2_592_000_000 }

const fields: readonly string[] = [
  ...['apiVersion', 'kind', 'enabled', 'dryRun', 'evictFailedBarePods', 'evictLocalStoragePods'],
  ...['evictSystemCriticalPods', 'ignorePvcPods', 'skipCheckExpectedReplicas', 'labelSelector'],
  ...['flowControlQPS', 'flowControlBurst', 'evictQPS', 'evictBurst', 'maxMigratingGlobally'],
  ...['maxMigratingPerNode', 'maxMigratingPerNamespace', 'maxMigratingPerWorkload'],
  ...['maxUnavailablePerWorkload', 'rounding', 'sortOrder', 'evictionPolicy', 'defaultDeleteOptions'],
  'preemptOtherNamespaces',
  ...['defaultJobMode', 'defaultJobTTL', 'arbitrationInterval', 'finishedJobTTL'],
]

/** Reads the configuration; an empty object gives the defaults. A field that is not known is refused. Never throws. */
export function parseArgs(value: unknown): ParsedArgs {
  const refused: Refusal[] = []
  const read = reader(refused)
  const given = read.object('args', value ?? {})
  read.only('', given, fields)
  const flag = (name: string, otherwise = false) => read.flag(name, given[name], otherwise)
  const limit = (name: string, otherwise: number) =>
    read.integer(name, given[name], pods, otherwise) || undefined
  const duration = (name: string, bounds: { min: number; max: number }, otherwise: number) =>
    isSet(given[name])
      ? read.measure(
          name,
          given[name],
          parseDuration,
          bounds,
          `a duration of ${bounds.min} to ${bounds.max} ms`,
        )
      : otherwise
  const args: MigrationControllerArgs = {
    isEnabled: flag('enabled', true),
    dryRun: flag('dryRun'),
    evictFailedBarePods: flag('evictFailedBarePods'),
    evictLocalStoragePods: flag('evictLocalStoragePods'),
    evictSystemCriticalPods: flag('evictSystemCriticalPods'),
    ignorePvcPods: flag('ignorePvcPods'),
    skipCheckExpectedReplicas: flag('skipCheckExpectedReplicas', true),
    labelSelector: selectorIn(read, given['labelSelector']),
    flowControl: rateIn(read, given, 'flowControl', undefined),
    evict: rateIn(read, given, 'evict', { perSecond: 10, burst: 1 }),
    maxMigratingGlobally: limit('maxMigratingGlobally', 0),
    maxMigratingPerNode: limit('maxMigratingPerNode', 2),
    maxMigratingPerNamespace: limit('maxMigratingPerNamespace', 0),
    maxMigratingPerWorkload: intOrPercentIn(read, given, 'maxMigratingPerWorkload'),
    maxUnavailablePerWorkload: intOrPercentIn(read, given, 'maxUnavailablePerWorkload'),
    rounding: read.oneOf('rounding', given['rounding'], roundings, 'Up'),
    sortOrder: read.oneOf('sortOrder', given['sortOrder'], sortOrders, 'Design'),
    evictionPolicy: read.oneOf('evictionPolicy', given['evictionPolicy'], evictionPolicies, 'Eviction'),
    defaultDeleteOptions: isSet(given['defaultDeleteOptions'])
      ? deleteOptionsIn(read, 'defaultDeleteOptions', given['defaultDeleteOptions'])
      : undefined,
    preemptOtherNamespaces: flag('preemptOtherNamespaces'),
    defaultJobMode: read.oneOf('defaultJobMode', given['defaultJobMode'], jobModes, 'ReservationFirst'),
    defaultJobTtlMs: duration('defaultJobTTL', jobLimits.ttl, 300_000),
    arbitrationIntervalMs: duration('arbitrationInterval', interval, 500),
    finishedJobTtlMs: duration('finishedJobTTL', retention, 3_600_000),
  }
  const [first] = refused
  return first === undefined ? { ok: true, args } : { ok: false, ...first }
}

/** Koordinator's type of rates is a string, because floats are no good in APIs. */
function rateIn<Otherwise extends Rate | undefined>(
  read: Reader,
  given: Readonly<Record<string, unknown>>,
  name: string,
  otherwise: Otherwise,
): Rate | Otherwise {
  const [qps, most] = [`${name}QPS`, `${name}Burst`]
  const value = given[qps]
  const its = read.integer(most, given[most], burst, 1)
  if (!isSet(value)) {
    if (otherwise === undefined && isSet(given[most]))
      read.invalid(most, given[most], `nothing without ${qps}`)
    return otherwise === undefined ? otherwise : { ...otherwise, burst: its }
  }
  const perSecond = read.measure(
    ...([qps, String(value)] as const),
    text => (/^\d{1,5}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined),
    ...([rate, 'a number from 0.001 to 10000'] as const),
  )
  return { perSecond, burst: its }
}

function intOrPercentIn(
  read: Reader,
  given: Readonly<Record<string, unknown>>,
  name: string,
): IntOrPercent | undefined {
  const value = given[name]
  if (!isSet(value)) return undefined
  const [, digits] = /^(\d{1,4})%$/.exec(String(value)) ?? []
  if (digits !== undefined) return { type: 'percent', value: Number(digits) }
  return { type: 'number', value: read.integer(name, value, pods, 0) }
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

function selectorIn(read: Reader, value: unknown): LabelSelector | undefined {
  if (!isSet(value)) return undefined
  const given = read.object('labelSelector', value)
  // An empty selector selects every pod, so nothing of it may be dropped.
  read.only('labelSelector', given, ['matchLabels', 'matchExpressions'])
  const matchLabels = Object.entries(read.object('labelSelector.matchLabels', given['matchLabels']))
  const expressions = listIn(read, 'labelSelector.matchExpressions', given['matchExpressions'])
  for (const [name, wanted] of matchLabels)
    if (!isText(wanted, /^/)) read.invalid(`labelSelector.matchLabels.${name}`, wanted, 'a text')
  return {
    matchLabels: Object.fromEntries(
      matchLabels.filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
    ),
    matchExpressions: expressions.map(each => {
      const field = 'labelSelector.matchExpressions'
      const expression = read.object(field, each)
      read.only(field, expression, ['key', 'operator', 'values'])
      const { key, operator, values } = expression
      const isOfValues = operator === 'In' || operator === 'NotIn'
      const texts = textsIn(values)
      if (texts.length !== listIn(read, `${field}.values`, values).length || isOfValues !== texts.length > 0)
        read.invalid(`${field}.values`, values, isOfValues ? 'a list of texts' : `nothing with ${operator}`)
      if (!isSet(key)) read.invalid(`${field}.key`, key, 'the name of a label')
      if (!isSet(operator)) read.invalid(`${field}.operator`, operator, `one of ${operators.join(', ')}`)
      return {
        key: read.text(`${field}.key`, key, { min: 1, max: 317 }, ''),
        operator: read.oneOf(`${field}.operator`, operator, operators, 'In'),
        values: texts,
      }
    }),
  }
}

function listIn(read: Reader, name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  if (isSet(value)) read.invalid(name, value, 'a list')
  return []
}
