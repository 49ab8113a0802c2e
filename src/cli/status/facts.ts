/** The facts about one set that a user needs. Plain data: `-o json` prints it as it is. */
import { type BackupPodSet, defaults, type HotBackupMode } from '../../api/backuppodset.ts'
import { keptBy } from '../../api/kept-by.ts'
import { labels } from '../../api/labels.ts'
import type { MigratingPod, MigratingPodStatus } from '../../api/migrating-pod.ts'
import { isFinished, type Migration, type MigrationPhase, outcomeOf } from '../../api/migration.ts'
import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import { slotLeaseName, slotNumberIn } from '../../api/numbered-slot.ts'
import { conditionTypes } from '../../api/reasons.ts'
import type { LastFailover, SlotStatus } from '../../api/slot-status.ts'
import type { Condition } from '../../kube/conditions.ts'
import type { Pod } from '../../kube/resources.ts'
import { cureOf, isAsItShouldBe, migratingPodCures } from '../cures.ts'
import type { World } from '../world.ts'
import { type PodFacts, podFacts } from './pods.ts'
import { indexOf, type ReportIndex } from './report-index.ts'

export type SlotFacts = SlotStatus

export interface Trouble {
  readonly condition: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
  readonly cure?: string
}

export interface NodeFacts {
  readonly node: string
  /** Version of the node's agent. Undefined: no agent reports from the node. */
  readonly agent?: string
  readonly ready: boolean
  /** Name and message of the first check that fails. */
  readonly problem?: string
  readonly reportedAt?: string
  /** The node's reports about the set's slots. */
  readonly slots: readonly (SlotReport & { readonly slot: number })[]
}

interface Count {
  readonly wanted: number
  readonly there: number
  /** Pods that are ready, or at their gate. */
  readonly inPlace: number
}

/** A Migration of a pod of the set that has not ended. */
export interface MoveFacts {
  readonly migration: string
  readonly pod: string
  readonly phase: MigrationPhase
  readonly from?: string
  readonly to?: string
  /** Reason and message: what it waits for. */
  readonly reason?: string
  readonly message?: string
}

/** The MigratingPod that has the set, or whose name the set has taken. */
export type MigratingPodFacts = Pick<
  MigratingPodStatus,
  'state' | 'activePod' | 'node' | 'migration' | 'lastMove'
>

export interface SetFacts {
  readonly namespace: string
  readonly name: string
  readonly createdAt: string
  readonly primaries: Count
  readonly hotBackups: Count
  readonly coldBackups: Count
  /** Undefined: the set keeps no memory. `state`: the operator fetches it from the application. */
  readonly memory?: {
    readonly source: 'memory' | 'state'
    readonly mode: HotBackupMode
    readonly interval: string
  }
  readonly ready: boolean
  /** The operator has seen this version of the set. */
  readonly observed: boolean
  readonly slots: readonly SlotFacts[]
  readonly pods: readonly PodFacts[]
  readonly troubles: readonly Trouble[]
  /** Undefined: this user may not read the reports of nodes. */
  readonly nodes?: readonly NodeFacts[]
  readonly lastFailover?: LastFailover
  readonly migratingPod?: MigratingPodFacts
  readonly moves: readonly MoveFacts[]
}

type Movers = Pick<World, 'migrations' | 'migratingPods'>

export function setsFacts({ sets, pods, reports, ...movers }: World): readonly SetFacts[] {
  const index = reports && indexOf(reports)
  const bySet = Map.groupBy(pods, pod => `${pod.metadata.namespace}/${pod.metadata.labels?.[labels.set]}`)
  return sets
    .map(set =>
      factsOf(set, bySet.get(`${set.metadata.namespace}/${set.metadata.name}`) ?? [], index, movers),
    )
    .sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1))
}

export const setFacts = (
  set: BackupPodSet,
  pods: readonly Pod[],
  reports: readonly NodeReport[] | undefined,
  movers: Movers = {},
): SetFacts => factsOf(set, pods, reports && indexOf(reports), movers)

function factsOf(
  set: BackupPodSet,
  pods: readonly Pod[],
  index: ReportIndex | undefined,
  { migrations = [], migratingPods = [] }: Movers,
): SetFacts {
  const { metadata, spec, status = {} } = set
  const { namespace = '', name, creationTimestamp = '' } = metadata
  const source = keptBy(set)
  const mode = spec.hotBackup?.mode ?? (source === 'state' ? 'Warm' : defaults.hotBackupMode)
  const conditions = status.conditions ?? []
  const { lastFailover } = status
  const owner = migratingPods.find(
    each => each.metadata.namespace === namespace && each.metadata.name === name,
  )
  const observed = status.observedGeneration === metadata.generation
  return {
    namespace,
    name,
    createdAt: creationTimestamp,
    primaries: {
      wanted: spec.replicas ?? defaults.replicas,
      there: status.replicas ?? 0,
      inPlace: status.readyReplicas ?? 0,
    },
    hotBackups: {
      wanted: spec.hotBackups ?? defaults.hotBackups,
      there: status.hotbackups ?? 0,
      inPlace: status.readyHotbackups ?? 0,
    },
    coldBackups: {
      wanted: spec.coldBackups ?? defaults.coldBackups,
      there: status.coldbackups ?? 0,
      inPlace: status.gatedColdbackups ?? 0,
    },
    ...(source === 'nothing'
      ? {}
      : { memory: { source, mode, interval: spec.checkpoint?.interval ?? defaults.checkpoint.interval } }),
    ready: observed && conditions.some(it => it.type === 'Ready' && it.status === 'True'),
    observed,
    slots: (status.slots ?? []).map(slot => withNewest(slot, namespace, name, index)),
    pods: podFacts(pods),
    troubles: [...troublesOf(conditions, observed), ...troublesOfOwner(owner)],
    moves: movesOf(migrations, namespace, name),
    ...(owner === undefined ? {} : { migratingPod: migratingPodFacts(owner) }),
    ...(index === undefined ? {} : { nodes: nodeFacts(namespace, name, pods, index) }),
    ...(lastFailover === undefined ? {} : { lastFailover }),
  }
}

function movesOf(all: readonly Migration[], namespace: string, set: string): readonly MoveFacts[] {
  return all
    .filter(
      each => each.metadata.namespace === namespace && each.status?.source?.set === set && !isFinished(each),
    )
    .map(each => {
      const { source, target, phase = 'Pending' } = each.status ?? {}
      const { reason, message } = outcomeOf(each) ?? {}
      return {
        ...{ migration: each.metadata.name, pod: each.spec.source.name, phase },
        ...(source && { from: source.node }),
        ...(target?.node !== undefined && { to: target.node }),
        ...(reason !== undefined && { reason }),
        ...(message !== undefined && { message }),
      }
    })
}

function migratingPodFacts({ status = {} }: MigratingPod): MigratingPodFacts {
  const { state, activePod, node, migration, lastMove } = status
  return {
    ...(state && { state }),
    ...(activePod !== undefined && { activePod }),
    ...(node !== undefined && { node }),
    ...(migration !== undefined && { migration }),
    ...(lastMove && { lastMove }),
  }
}

/** The set itself does not know why its MigratingPod is invalid. */
function troublesOfOwner(owner: MigratingPod | undefined): readonly Trouble[] {
  if (owner?.status?.state !== 'Invalid') return []
  const ready = owner.status.conditions?.find(({ type }) => type === conditionTypes.ready)
  if (ready === undefined) return []
  const { status, reason, message } = ready
  const cure = migratingPodCures[reason]
  return [
    {
      ...{ condition: 'MigratingPod Ready', status, reason, message },
      ...(cure === undefined ? {} : { cure }),
    },
  ]
}

/** Node reports show a new generation at once, the status of the set only once a minute. */
function withNewest(
  slot: SlotStatus,
  namespace: string,
  name: string,
  index: ReportIndex | undefined,
): SlotFacts {
  const [newest] = [...(index?.slot(namespace, slotLeaseName(name, slot.slot)).values() ?? [])]
    .filter(({ usable, epoch = slot.epoch }) => usable !== undefined && epoch === slot.epoch)
    .sort((a, b) => b.generation - a.generation)
  if (newest?.takenAt === undefined || newest.generation <= (slot.generation ?? 0)) return slot
  return { ...slot, generation: newest.generation, savedAt: newest.takenAt }
}

function troublesOf(conditions: readonly Condition[], observed: boolean): readonly Trouble[] {
  const unseen: readonly Trouble[] = [
    {
      condition: 'Observed',
      status: 'False',
      reason: 'NotSeen',
      message: 'the operator has not processed this version of the set yet',
      cure: 'no action needed in the first second; after that, check with `kubectl understudy doctor` that an operator runs',
    },
  ]
  return [
    ...(observed ? [] : unseen),
    ...conditions
      .filter(condition => !isAsItShouldBe(condition))
      .map(condition => {
        const { type, status, reason, message } = condition
        const cure = cureOf(condition)
        return { condition: type, status, reason, message, ...(cure === undefined ? {} : { cure }) }
      }),
  ]
}

/** The nodes with pods of the set, or with reports about its slots. */
function nodeFacts(
  namespace: string,
  name: string,
  pods: readonly Pod[],
  index: ReportIndex,
): readonly NodeFacts[] {
  const kept = index.slotsOf(namespace, name).flatMap(lease => {
    const slot = slotNumberIn(name, lease)
    if (slot === undefined) return []
    return [...index.slot(namespace, lease)].map(([node, report]) => ({ node, report: { ...report, slot } }))
  })
  const byNode = Map.groupBy(kept, ({ node }) => node)
  const ofPods = pods.flatMap(({ spec }) => spec?.nodeName ?? [])
  return [...new Set([...ofPods, ...byNode.keys()])].sort().map(node => {
    const report = index.nodes.get(node)
    const failed = report?.checks.find(({ ok }) => !ok)
    const slots = (byNode.get(node) ?? []).map(({ report: each }) => each).sort((a, b) => a.slot - b.slot)
    return {
      node,
      ...(report === undefined ? {} : { agent: report.version, reportedAt: report.updatedAt }),
      ready: report?.ready ?? false,
      ...(failed === undefined ? {} : { problem: `${failed.name}: ${failed.message}` }),
      slots,
    }
  })
}
