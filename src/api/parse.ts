import {
  type AntiAffinity,
  antiAffinities,
  type BackupPodSet,
  type CrashLoopPolicy,
  choiceKeys,
  crashLoopPolicies,
  defaults,
  type GatePosition,
  gatePositions,
  limits,
  type PodTemplate,
  placementKeys,
  placements,
  type Strategy,
  type StrategyKey,
  strategies,
  type UpdateStrategy,
  updateStrategies,
} from './backuppodset.ts'
import { invalidValue, type Refusal, refusalOf } from './errors.ts'
import { brokenRule } from './template-rules.ts'

/** A set whose every field is there and valid: what comes after `parseSet` checks nothing again. Frozen. */
export interface ParsedSet {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly generation: number
  readonly replicas: number
  readonly hotBackups: number
  readonly coldBackups: number
  readonly strategy: Readonly<Record<StrategyKey, Strategy>>
  readonly schedulerName: string
  /** Seconds. */
  readonly wakeupTimeout: number
  readonly gatePosition: GatePosition
  readonly paused: boolean
  readonly antiAffinity: AntiAffinity
  readonly updateStrategy: UpdateStrategy
  readonly failover: { readonly unreadySeconds: number; readonly crashLoop: CrashLoopPolicy }
  readonly template: PodTemplate & { readonly spec: NonNullable<PodTemplate['spec']> }
}

export type Parsed = { readonly ok: true; readonly set: ParsedSet } | ({ readonly ok: false } & Refusal)

/**
 * Parses a set as the API server stores it. The schema and its rules have checked it already, so a refusal means an
 * object that was stored under an older CRD or one without its rules; nothing of its shape is taken for granted here.
 */
export function parseSet(object: BackupPodSet): Parsed {
  const { metadata } = object
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', object.spec)
  const strategy = read.object('spec.strategy', spec['strategy'])
  const updateStrategy = read.object('spec.updateStrategy', spec['updateStrategy'])
  const failover = read.object('spec.failover', spec['failover'])
  const count = (key: 'replicas' | 'hotBackups' | 'coldBackups') =>
    read.integer(`spec.${key}`, spec[key], limits.count, defaults[key])
  const chosen = (keys: readonly StrategyKey[], values: readonly Strategy[]) =>
    keys.map(
      key => [key, read.oneOf(`spec.strategy.${key}`, strategy[key], values, defaults.strategy)] as const,
    )
  const values = {
    replicas: count('replicas'),
    hotBackups: count('hotBackups'),
    coldBackups: count('coldBackups'),
    strategy: Object.freeze(
      Object.fromEntries([...chosen(placementKeys, placements), ...chosen(choiceKeys, strategies)]),
    ) as Record<StrategyKey, Strategy>,
    schedulerName: read.text(
      'spec.schedulerName',
      spec['schedulerName'],
      limits.schedulerName,
      defaults.schedulerName,
    ),
    wakeupTimeout: read.integer(
      'spec.wakeupTimeout',
      spec['wakeupTimeout'],
      limits.wakeupTimeout,
      defaults.wakeupTimeout,
    ),
    gatePosition: read.oneOf('spec.gatePosition', spec['gatePosition'], gatePositions, defaults.gatePosition),
    paused: read.flag('spec.paused', spec['paused'], defaults.paused),
    antiAffinity: read.oneOf(
      'spec.antiAffinity',
      spec['antiAffinity'],
      antiAffinities,
      defaults.antiAffinity,
    ),
    updateStrategy: read.oneOf(
      'spec.updateStrategy.type',
      updateStrategy['type'],
      updateStrategies,
      defaults.updateStrategy,
    ),
    failover: Object.freeze({
      unreadySeconds: read.integer(
        'spec.failover.unreadySeconds',
        failover['unreadySeconds'],
        limits.unreadySeconds,
        defaults.unreadySeconds,
      ),
      crashLoop: read.oneOf(
        'spec.failover.crashLoop',
        failover['crashLoop'],
        crashLoopPolicies,
        defaults.crashLoop,
      ),
    }),
    template: spec['template'] as ParsedSet['template'],
  }
  if (metadata.name.length > limits.name) refused.push(refusalOf('NameTooLong'))
  const code = brokenRule(values)
  if (code !== undefined) refused.push(refusalOf(code))
  const [first] = refused
  if (first !== undefined) return { ok: false, ...first }
  return {
    ok: true,
    set: Object.freeze({
      name: metadata.name,
      namespace: metadata.namespace ?? '',
      uid: metadata.uid,
      generation: metadata.generation ?? 0,
      ...values,
    }),
  }
}

/** Readers of single fields: absent and null give the default; what does not fit is noted and gives the default, too. */
function reader(refused: Refusal[]) {
  const field = <T>(
    name: string,
    value: unknown,
    fits: (value: NonNullable<unknown>) => boolean,
    expected: string,
    otherwise: T,
  ): T => {
    if (value === undefined || value === null) return otherwise
    if (fits(value)) return value as T
    refused.push(invalidValue(name, value, expected))
    return otherwise
  }
  return {
    integer: (name: string, value: unknown, { min, max }: Bounds, otherwise: number) =>
      field(
        name,
        value,
        it => Number.isInteger(it) && (it as number) >= min && (it as number) <= max,
        `a whole number from ${min} to ${max}`,
        otherwise,
      ),
    text: (name: string, value: unknown, { min, max }: Bounds, otherwise: string) =>
      field(
        name,
        value,
        it => typeof it === 'string' && it.length >= min && it.length <= max,
        `a text of ${min} to ${max} characters`,
        otherwise,
      ),
    flag: (name: string, value: unknown, otherwise: boolean) =>
      field(name, value, it => typeof it === 'boolean', 'true or false', otherwise),
    oneOf: <Value extends string>(
      name: string,
      value: unknown,
      values: readonly Value[],
      otherwise: NoInfer<Value>,
    ) =>
      field<Value>(
        name,
        value,
        it => values.some(one => one === it),
        `one of ${values.join(', ')}`,
        otherwise,
      ),
    object: (name: string, value: unknown) =>
      field<Readonly<Record<string, unknown>>>(
        name,
        value,
        it => typeof it === 'object' && !Array.isArray(it),
        'an object',
        {},
      ),
  }
}

interface Bounds {
  readonly min: number
  readonly max: number
}
