import {
  type AntiAffinity,
  antiAffinities,
  type BackupPodSet,
  type CrashLoopPolicy,
  choiceKeys,
  crashLoopPolicies,
  defaults,
  type Fencing,
  fencings,
  type GatePosition,
  type Grantee,
  gatePositions,
  grantees,
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
import { type Refusal, refusalOf } from './errors.ts'
import type { ParsedLiveness, ParsedMemory, ParsedPull, ParsedService } from './memory.ts'
import { isOfMigratingPod } from './migrating-pod.ts'
import { nodeTimeoutOf, parseLiveness, parseMemory, parseService } from './parse-memory.ts'
import { parsePull, pullsState } from './parse-pull.ts'
import { type Reader, reader } from './reader.ts'
import { brokenRule, containerNames } from './template-rules.ts'
import { isSet } from './unknown.ts'

/** A set with all fields present and valid: code after `parseSet` need not validate again. Frozen. */
export interface ParsedSet {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly generation: number
  /** Its pods are named NAME-0, NAME-1 and so on, as pods of a MigratingPod are. */
  readonly isNumbered?: true
  readonly replicas: number
  readonly hotBackups: number
  readonly coldBackups: number
  readonly strategy: Readonly<Record<StrategyKey, Strategy>>
  readonly schedulerName: string
  /** Seconds. */
  readonly wakeupTimeout: number
  readonly gatePosition: GatePosition
  readonly paused: boolean
  /** No pod of it is to run; its memory is kept. */
  readonly suspended: boolean
  /** Name of the pod with whose memory each new slot begins. */
  readonly cloneFrom: string | undefined
  readonly antiAffinity: AntiAffinity
  readonly updateStrategy: UpdateStrategy
  /** A roll may lose memory that cannot be restored in pods of the new template. */
  readonly allowStateLoss: boolean
  readonly failover: {
    readonly unreadySeconds: number
    readonly crashLoop: CrashLoopPolicy
    readonly nodeTimeoutMs: number
    readonly fencing: Fencing
    readonly grant: Grantee
  }
  /** Undefined: no memory is kept, and hot backups are as in the paper. */
  readonly memory: ParsedMemory | undefined
  /** The app's own state is pulled over HTTP; never together with `memory`. */
  readonly pull: ParsedPull | undefined
  readonly service: ParsedService | undefined
  readonly liveness: ParsedLiveness | undefined
  readonly template: PodTemplate & { readonly spec: NonNullable<PodTemplate['spec']> }
}

export type Parsed =
  | { readonly ok: true; readonly set: ParsedSet }
  /** `legible`: the set, with defaults for unreadable fields; absent if not even its containers are readable. */
  | ({ readonly ok: false; readonly legible?: ParsedSet } & Refusal)

/**
 * Parses a set as the API server stores it. The schema and its rules have checked it already, so a refusal means that
 * it was stored under an older CRD or one without these rules. The parser assumes nothing about its shape.
 */
export function parseSet(object: BackupPodSet): Parsed {
  const { metadata } = object
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', object.spec)
  const strategy = read.object('spec.strategy', spec['strategy'])
  const updateStrategy = read.object('spec.updateStrategy', spec['updateStrategy'])
  const failover = read.object('spec.failover', spec['failover'])
  const values = parseValues(read, { spec, strategy, updateStrategy, failover })
  if (metadata.name.length > limits.name) refused.push(refusalOf('NameTooLong'))
  const code = brokenRule({
    ...values,
    set: metadata.name,
    keepsMemory: values.memory !== undefined,
    pullsState: pullsState(spec),
    suspend: spec['suspend'],
    cloneFrom: spec['cloneFrom'],
    checkpoint: spec['checkpoint'],
    hotBackup: spec['hotBackup'],
    service: spec['service'],
    liveness: failover['liveness'],
    allowStateLoss: updateStrategy['allowStateLoss'],
    updateType: updateStrategy['type'],
  })
  if (code !== undefined) refused.push(refusalOf(code))
  const [first] = refused
  const set = Object.freeze({
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    generation: metadata.generation ?? 0,
    ...values,
    // A number that others write is undone later. Until then no pod is created or deleted for that number: the pod with
    // the memory could be deleted.
    ...(isOfMigratingPod(object) && { isNumbered: true, replicas: 1 }),
  })
  if (first === undefined) return { ok: true, set }
  return { ok: false, ...first, ...(containerNames(spec['template']).length > 0 && { legible: set }) }
}

type Fields = ReturnType<Reader['object']>

/** The objects of a spec, with fields that are not read yet. */
interface Sections {
  readonly spec: Fields
  readonly strategy: Fields
  readonly updateStrategy: Fields
  readonly failover: Fields
}

function parseValues(read: Reader, { spec, strategy, updateStrategy, failover }: Sections) {
  const count = (key: 'replicas' | 'hotBackups' | 'coldBackups') =>
    read.integer(`spec.${key}`, spec[key], limits.count, defaults[key])
  const pull = parsePull(read, spec)
  const memory = pull === undefined ? parseMemory(read, spec) : undefined
  return {
    replicas: count('replicas'),
    hotBackups: count('hotBackups'),
    coldBackups: count('coldBackups'),
    strategy: parseStrategy(read, strategy),
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
    suspended: read.flag('spec.suspend', spec['suspend'], defaults.suspend),
    cloneFrom: parseCloneFrom(read, spec['cloneFrom']),
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
      (memory ?? pull) ? defaults.updateStrategyWithMemory : defaults.updateStrategy,
    ),
    allowStateLoss: read.flag(
      'spec.updateStrategy.allowStateLoss',
      updateStrategy['allowStateLoss'],
      defaults.allowStateLoss,
    ),
    failover: parseFailover(read, failover),
    memory,
    pull,
    service: parseService(read, spec['service']),
    liveness: parseLiveness(read, failover['liveness']),
    template: spec['template'] as ParsedSet['template'],
  }
}

const parseCloneFrom = (read: Reader, value: unknown): string | undefined =>
  isSet(value)
    ? read.text('spec.cloneFrom.pod', read.object('spec.cloneFrom', value)['pod'] ?? '', limits.podName, '')
    : undefined

function parseStrategy(read: Reader, strategy: Fields): ParsedSet['strategy'] {
  const chosen = (keys: readonly StrategyKey[], values: readonly Strategy[]) =>
    keys.map(
      key => [key, read.oneOf(`spec.strategy.${key}`, strategy[key], values, defaults.strategy)] as const,
    )
  return Object.freeze(
    Object.fromEntries([...chosen(placementKeys, placements), ...chosen(choiceKeys, strategies)]),
  ) as Record<StrategyKey, Strategy>
}

const parseFailover = (read: Reader, failover: Fields): ParsedSet['failover'] =>
  Object.freeze({
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
    nodeTimeoutMs: nodeTimeoutOf(read, failover['nodeTimeout']),
    fencing: read.oneOf('spec.failover.fencing', failover['fencing'], fencings, defaults.fencing),
    grant: read.oneOf('spec.failover.grant', failover['grant'], grantees, defaults.grant),
  })
