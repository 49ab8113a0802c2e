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
  hotBackupModes,
  limits,
  type PodTemplate,
  placementKeys,
  placements,
  type ServiceSpec,
  type Strategy,
  type StrategyKey,
  strategies,
  type UpdateStrategy,
  updateStrategies,
} from './backuppodset.ts'
import { invalidValue, type Refusal, refusalOf } from './errors.ts'
import {
  type ParsedLiveness,
  type ParsedMemory,
  type ParsedService,
  parseBytes,
  parseDuration,
} from './memory.ts'
import { brokenRule, containerNames } from './template-rules.ts'

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
  /** Undefined: nothing is kept, hot backups are as in the paper. */
  readonly memory: ParsedMemory | undefined
  readonly service: ParsedService | undefined
  readonly liveness: ParsedLiveness | undefined
  readonly template: PodTemplate & { readonly spec: NonNullable<PodTemplate['spec']> }
}

type Reader = ReturnType<typeof reader>

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
    memory: parseMemory(read, spec),
    service: parseService(read, spec['service']),
    liveness: parseLiveness(read, failover['liveness']),
    template: spec['template'] as ParsedSet['template'],
  }
  if (metadata.name.length > limits.name) refused.push(refusalOf('NameTooLong'))
  const code = brokenRule({
    ...values,
    keepsMemory: values.memory !== undefined,
    checkpoint: spec['checkpoint'],
    hotBackup: spec['hotBackup'],
  })
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

/** A set asks for memory by `checkpoint`, unless its hot backups are to be `Warm`. */
function parseMemory(read: Reader, spec: Readonly<Record<string, unknown>>): ParsedMemory | undefined {
  const hotBackup = read.object('spec.hotBackup', spec['hotBackup'])
  const mode = read.oneOf('spec.hotBackup.mode', hotBackup['mode'], hotBackupModes, defaults.hotBackupMode)
  if (spec['checkpoint'] === undefined || spec['checkpoint'] === null || mode === 'Warm') return undefined
  const checkpoint = read.object('spec.checkpoint', spec['checkpoint'])
  const volumes = read.object('spec.checkpoint.volumes', checkpoint['volumes'])
  const all = containerNames(spec['template'])
  const named = checkpoint['containers']
  const number = (key: 'maxFreezePercent' | 'copies' | 'keep') =>
    read.integer(`spec.checkpoint.${key}`, checkpoint[key], limits[key], defaults.checkpoint[key])
  return Object.freeze({
    mode,
    intervalMs: read.measure(
      'spec.checkpoint.interval',
      checkpoint['interval'] ?? defaults.checkpoint.interval,
      parseDuration,
      limits.interval,
      'a duration from 200ms to 1h',
    ),
    maxFreezePercent: number('maxFreezePercent'),
    // Which of them there are is a rule of the template.
    containers: all.filter(name => !Array.isArray(named) || named.includes(name)),
    copies: number('copies'),
    keep: number('keep'),
    volumeBytes: read.measure(
      'spec.checkpoint.volumes.maxSize',
      volumes['maxSize'] ?? defaults.checkpoint.volumes.maxSize,
      parseBytes,
      { min: 0, max: Number.MAX_SAFE_INTEGER },
      'a size such as 512Mi',
    ),
  })
}

function parseService(read: Reader, value: unknown): ParsedService | undefined {
  if (value === undefined || value === null) return undefined
  const service = read.object('spec.service', value)
  const ports = Array.isArray(service['ports']) ? (service['ports'] as ServiceSpec['ports']) : []
  return Object.freeze({
    name: typeof service['name'] === 'string' ? service['name'] : undefined,
    perSlot: read.flag('spec.service.perSlot', service['perSlot'], defaults.perSlot),
    ports: ports.map(({ name, port, targetPort, protocol }) => ({
      name,
      port,
      targetPort: targetPort ?? port,
      protocol: protocol ?? defaults.protocol,
    })),
  })
}

function parseLiveness(read: Reader, value: unknown): ParsedLiveness | undefined {
  if (value === undefined || value === null) return undefined
  const liveness = read.object('spec.failover.liveness', value)
  const { periodMilliseconds, failureThreshold } = defaults.liveness
  return Object.freeze({
    periodMs: read.integer(
      'spec.failover.liveness.periodMilliseconds',
      liveness['periodMilliseconds'],
      limits.livenessPeriod,
      periodMilliseconds,
    ),
    failureThreshold: read.integer(
      'spec.failover.liveness.failureThreshold',
      liveness['failureThreshold'],
      limits.failureThreshold,
      failureThreshold,
    ),
  })
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
    /** A text with a unit, as the number that it means. */
    measure: (
      name: string,
      value: unknown,
      parse: (text: string) => number | undefined,
      { min, max }: Bounds,
      expected: string,
    ): number => {
      const read = typeof value === 'string' ? parse(value) : undefined
      if (read !== undefined && read >= min && read <= max) return read
      refused.push(invalidValue(name, value, expected))
      return min
    },
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
