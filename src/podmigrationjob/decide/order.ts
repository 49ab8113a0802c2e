/** The order in which waiting jobs are judged: those judged first get the places in the budgets. */
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import type { Budgets } from './budgets.ts'
import { type PodFacts, qosClasses, type WaitingJob, type World } from './world.ts'

export interface Candidate {
  readonly job: WaitingJob
  readonly pod: PodFacts
}

/** Returns the candidates in the order of the configuration: total, and the same for the same jobs in any order. */
export function inOrder(
  candidates: readonly Candidate[],
  { history }: Pick<World, 'history'>,
  budgets: Pick<Budgets, 'migrating'>,
  { sortOrder }: Pick<MigrationControllerArgs, 'sortOrder'>,
): readonly Candidate[] {
  switch (sortOrder) {
    case 'Design':
      return byKeys(candidates, candidate => designKeys(candidate, history, budgets))
    case 'Koordinator':
      return adjacent(byKeys(candidates, candidate => koordinatorKeys(candidate, budgets)))
    default:
      return sortOrder satisfies never
  }
}

type Keys = readonly number[]

function byKeys(candidates: readonly Candidate[], keysOf: (of: Candidate) => Keys): readonly Candidate[] {
  return candidates
    .map(candidate => ({ candidate, keys: keysOf(candidate) }))
    .sort((a, b) => compare(a.keys, b.keys) || byName(a.candidate.job, b.candidate.job))
    .map(({ candidate }) => candidate)
}

function compare(a: Keys, b: Keys): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

const byName = (a: WaitingJob, b: WaitingJob): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)

const workloadOf = ({ owner }: PodFacts) => (owner.type === 'workload' ? owner.key : undefined)

const qosRank = ({ qos }: PodFacts) => qosClasses.indexOf(qos)

/**
 * The more demanding class, the higher priority, the lower eviction cost, the higher priority of the job, the pod with fewer failed
 * jobs, the workload from which fewer pods were taken, and of which fewer are under way, then the older job.
 */
function designKeys(
  { job, pod }: Candidate,
  { failures, descheduled }: World['history'],
  budgets: Pick<Budgets, 'migrating'>,
): Keys {
  const workload = workloadOf(pod)
  return [
    ...[qosRank(pod), -pod.priority, pod.evictionCost, -job.priority],
    failures.get(pod.uid) ?? 0,
    ...(workload === undefined ? [0, 0] : [descheduled.get(workload) ?? 0, budgets.migrating(workload)]),
    job.createdAt,
  ]
}

const isBatch = ({ owner }: PodFacts) => owner.type === 'workload' && owner.kind === 'Job'

/** Of batch Jobs, one of which pods are under way already comes first; else the less important pod, then the newer job. */
function koordinatorKeys({ job, pod }: Candidate, budgets: Pick<Budgets, 'migrating'>): Keys {
  const workload = workloadOf(pod)
  const underWay = workload !== undefined && isBatch(pod) ? budgets.migrating(workload) : 0
  return [-underWay, pod.priority, -qosRank(pod), pod.evictionCost, -job.createdAt]
}

/** Puts all jobs of one batch Job behind the first of them. */
function adjacent(candidates: readonly Candidate[]): readonly Candidate[] {
  const groups = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    const key = isBatch(candidate.pod) ? `batch/${workloadOf(candidate.pod)}` : `job/${candidate.job.key}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [candidate])
    else group.push(candidate)
  }
  return [...groups.values()].flat()
}
