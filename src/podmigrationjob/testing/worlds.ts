/** Worlds for tests of the rules: complete facts with a few differences. */
import { type MigrationControllerArgs, parseArgs } from '../../api/migration-controller-args.ts'
import type {
  DisruptionBudget,
  NodeRoom,
  PodFacts,
  RunningJob,
  WaitingJob,
  WorkloadFacts,
  World,
} from '../decide/world.ts'

/** @throws Error if the configuration is refused. */
export function argsWith(given: Readonly<Record<string, unknown>> = {}): MigrationControllerArgs {
  const parsed = parseArgs({ maxMigratingPerNode: 0, ...given })
  if (!parsed.ok) throw new Error(parsed.message)
  return parsed.args
}

export const podWith = (name: string, over: Partial<PodFacts> = {}): PodFacts => ({
  ...{ uid: `uid-${name}`, namespace: 'default', name, node: 'n1', labels: {} },
  ...{ isReady: true, isTerminating: false, graceSeconds: undefined, isFailed: false, isStatic: false },
  ...{ qos: 'LS', priority: 0, evictionCost: 0, deletionCost: undefined, softEvictionBy: undefined },
  owner: { type: 'workload', key: 'StatefulSet/default/web', kind: 'StatefulSet' },
  ...{ hasLocalStorage: false, hasClaim: false, isSystemCritical: false, disruptionBudgets: [] },
  ...{ nominated: undefined, isPreempted: false, requests: {}, placement: {} },
  ...{ preempts: true, apart: [], isUnjudged: false },
  ...over,
})

export const waitingFor = (
  { name, namespace, uid }: PodFacts,
  over: Partial<WaitingJob> = {},
): WaitingJob => ({
  ...{ key: `job-${name}`, name: `job-${name}`, createdAt: 0, mode: 'EvictDirectly', priority: 0 },
  ...{ pod: { namespace, name, uid }, skipGates: new Set(), seenForMs: 60_000 },
  ...over,
})

export const runningFor = ({ name, uid, namespace, node, owner, ...pod }: PodFacts): RunningJob => ({
  ...{ key: `running-${name}`, name: `running-${name}`, createdAt: 0 },
  place: { uid, namespace, node, workload: owner.type === 'workload' ? owner.key : undefined },
  disruptionBudgets: pod.isTerminating || !pod.isReady ? [] : pod.disruptionBudgets,
})

/** @param desired by workload; default: as many as it has pods. */
export function worldOf(
  pods: readonly PodFacts[],
  {
    desired = {},
    rolling = [],
    budgets = [],
    nodes = [],
    history = {},
  }: {
    readonly desired?: Readonly<Record<string, number>>
    readonly rolling?: readonly string[]
    readonly budgets?: readonly DisruptionBudget[]
    readonly nodes?: readonly NodeRoom[]
    readonly history?: Partial<World['history']>
  } = {},
): World {
  const keys = new Set([
    ...Object.keys(desired),
    ...pods.flatMap(({ owner }) => (owner.type === 'workload' ? [owner.key] : [])),
  ])
  const workloads = new Map<string, WorkloadFacts>()
  for (const key of keys) {
    const its = pods.filter(({ owner }) => owner.type === 'workload' && owner.key === key)
    const isHealthy = ({ isReady, isTerminating }: PodFacts) => isReady && !isTerminating
    workloads.set(key, {
      desired: desired[key] ?? its.length,
      isRolling: rolling.includes(key),
      healthy: new Set(its.filter(isHealthy).map(({ uid }) => uid)),
      unhealthy: new Set(its.filter(pod => !isHealthy(pod)).map(({ uid }) => uid)),
    })
  }
  return {
    pods: new Map(pods.map(pod => [`${pod.namespace}/${pod.name}`, pod])),
    workloads,
    disruptionBudgets: new Map(budgets.map(budget => [budget.name, budget])),
    nodes: new Map(nodes.map(node => [node.name, node])),
    history: { failures: new Map(), descheduled: new Map(), ...history },
  }
}

export const budgetWith = (name: string, over: Partial<DisruptionBudget> = {}): DisruptionBudget => ({
  ...{ name, isCurrent: true, allowed: 1, currentHealthy: 3, desiredHealthy: 2, sparesUnready: false },
  ...over,
})
