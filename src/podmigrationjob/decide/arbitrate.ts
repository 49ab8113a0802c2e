/** Arbitration: judges all waiting jobs together. Pure, total and deterministic. */
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { Budgets, type Obstacle } from './budgets.ts'
import { refusalOf } from './eligible.ts'
import { type Candidate, inOrder } from './order.ts'
import type { Place, PodFacts, RunningJob, WaitingJob, World } from './world.ts'

/** Time for the caches to show a pod after its job, ms. */
export const settlesMs = 10_000

export type Verdict =
  | { readonly type: 'admitted'; readonly place: Place }
  /** For good. */
  | ({ readonly type: 'refused' } & Obstacle)
  | ({ readonly type: 'waits' } & Obstacle)

export interface Arbitration {
  /** Of every waiting job, by its key. */
  readonly verdicts: ReadonlyMap<string, Verdict>
  /** Jobs that were admitted, in their order. */
  readonly admitted: readonly WaitingJob[]
}

interface Jobs {
  readonly waiting: readonly WaitingJob[]
  readonly running: readonly RunningJob[]
}

/** @param tokens how many jobs the flow control lets begin now. */
export function arbitrate(
  { waiting, running }: Jobs,
  world: World,
  args: MigrationControllerArgs,
  tokens = Number.POSITIVE_INFINITY,
): Arbitration {
  const verdicts = new Map<string, Verdict>()
  const admitted: WaitingJob[] = []
  const budgets = new Budgets(world, args)
  for (const { place, disruptionBudgets } of running) budgets.add(place, disruptionBudgets)
  const candidates = waiting.flatMap((job): readonly Candidate[] => {
    const found = candidateOf(job, world, args)
    if ('pod' in found) return [found]
    verdicts.set(job.key, found)
    return []
  })
  for (const { job, pod } of inOrder(candidates, world, budgets, args)) {
    const obstacle =
      obstacleTo(job, pod, world, budgets) ?? (admitted.length < tokens ? undefined : flowControl)
    if (obstacle !== undefined) {
      verdicts.set(job.key, { type: 'waits', ...obstacle })
      continue
    }
    // It counts at once: those after it see one place less.
    const place = placeOf(pod)
    budgets.add(place, disruptionBudgetsOf(job, pod))
    verdicts.set(job.key, { type: 'admitted', place })
    admitted.push(job)
  }
  return { verdicts, admitted }
}

const flowControl: Obstacle = {
  reason: 'FlowControl',
  message: 'waits: flowControlQPS lets no further job begin now',
}

/** Budgets count by these facts as long as the job runs, although its pod may be gone. */
export const placeOf = ({ uid, namespace, node, owner }: PodFacts): Place => ({
  ...{ uid, namespace, node },
  workload: owner.type === 'workload' ? owner.key : undefined,
})

/** The disruption budgets from which the removal of the pod will be taken. */
export const disruptionBudgetsOf = (
  { mode }: Pick<WaitingJob, 'mode'>,
  { isReady, isTerminating, disruptionBudgets }: PodFacts,
): readonly string[] => (mode === 'Live' || !isReady || isTerminating ? [] : disruptionBudgets)

/** A job without a pod that the caches show passes no rule. */
function candidateOf(job: WaitingJob, world: World, args: MigrationControllerArgs): Candidate | Verdict {
  const { namespace, name, uid } = job.pod
  const pod = world.pods.get(`${namespace}/${name}`)
  if (pod === undefined || (uid !== undefined && pod.uid !== uid)) {
    const message =
      pod === undefined
        ? `there is no pod ${namespace}/${name}`
        : `another pod has the name ${namespace}/${name} now`
    return { type: job.seenForMs < settlesMs ? 'waits' : 'refused', reason: 'MissingPod', message }
  }
  if (pod.isTerminating)
    return { type: 'refused', reason: 'MissingPod', message: 'the pod is being deleted already' }
  const refusal = refusalOf(job, pod, world, args)
  return refusal === undefined
    ? { job, pod }
    : { type: 'refused', reason: 'ForbiddenMigratePod', message: refusal }
}

function obstacleTo(
  { mode, skipGates, lentBy }: WaitingJob,
  pod: PodFacts,
  { workloads }: World,
  budgets: Budgets,
): Obstacle | undefined {
  const { owner, uid } = pod
  if (budgets.isUnderWay(uid))
    return { reason: 'AlreadyMigrating', message: 'waits: another job migrates this pod' }
  if (owner.type === 'unknown')
    return { reason: 'WorkloadUnknown', message: `waits: its owner ${owner.name} is not known yet` }
  const isRolling = owner.type === 'workload' && workloads.get(owner.key)?.isRolling === true
  if (isRolling && !skipGates.has('RollingOut'))
    return { reason: 'RollingOut', message: `waits until ${owner.key} has rolled out its change` }
  return budgets.obstacleTo(pod, {
    isKeptServing: mode === 'Live',
    ...(lentBy !== undefined && { without: new Set([lentBy]) }),
  })
}
