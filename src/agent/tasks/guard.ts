import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { podDirectory } from '../container/cgroup.ts'
import { endTree } from '../criu/tree.ts'
import type { TaskOf } from '../decide/task.ts'
import { endWatched, runningOf, watchesOf } from './remains.ts'
import type { TaskContext } from './task-context.ts'

type GuardContext = Pick<TaskContext, 'sentinel' | 'driver' | 'fencing' | 'log'>

/** Lets a primary serve only while its voters answer. The sentinel keeps to that, whatever becomes of this agent. */
export async function guard(
  work: GuardContext,
  { pod, slot, fence }: TaskOf<'guard'>,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, fencing, log } = work
  const running = await runningOf(work, pod, signal)
  const [first] = running
  if (first === undefined) throw new AgentError('NotRunning', pod.name)
  // With the pod's own cgroup, containers that start later are stopped as well.
  const cgroups = new Set(running.flatMap(it => it.cgroups).map(path => podDirectory(path, pod.uid) ?? path))
  const { term, version, timeoutMs, voters, next } = fence
  const about = { name: pod.uid, slot, term, version, timeoutMs, voters, next }
  const request = { ...about, netns: first.init, cgroups: [...cgroups] }
  await sentinel.guard(request, signal).catch(async (error: unknown) => {
    if (!isAgentError(error, 'SentinelRefused') || error.detail?.endsWith('another-slot') !== true)
      throw error
    // The memory of the earlier slot has ended here: the pod has begun another one since.
    await sentinel.unguard(pod.uid, signal)
    fencing.unguarded(pod.uid)
    await sentinel.guard(request, signal)
  })
  fencing.acknowledged(pod.uid, slot, fence)
  log.info({ pod: pod.name, slot, term, version }, 'primary guarded')
}

/**
 * Lets a pod run without voters. The API server has the last word, because a pod whose slot went to another pod would resume
 * beside it.
 *
 * @throws KubeError.
 */
export async function unguard(
  work: GuardContext & Pick<TaskContext, 'inquiry'>,
  { pod, of, isLoser = false }: TaskOf<'unguard'>,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, fencing, inquiry, log } = work
  const isShut = isLoser && fencing.isFenced(pod.uid)
  if (of === undefined) {
    await endWatched(sentinel, await watchesOf(sentinel, pod.uid, signal))
    // The kubelet may have started containers that are stopped as well, and that no sentinel watches.
    const stopped = fencing.isFenced(pod.uid) ? await runningOf(work, pod, signal) : []
    await Promise.all(stopped.map(({ init }) => endTree(sentinel, init)))
  } else {
    const now = await inquiry.lease(of, signal)
    // Our Lease is stale: the next one decides.
    if (now !== undefined && (now.holder.uid !== pod.uid || (now.fence?.version ?? 0) > 0)) return
    // The Lease may have named another pod at last, and went with its set. The kubelet ends both pods.
    if (now === undefined && fencing.isFenced(pod.uid) && !(await inquiry.isThere(pod, signal))) return
  }
  await sentinel.unguard(pod.uid, signal, isShut)
  fencing.unguarded(pod.uid)
  log.info({ pod: pod.name }, 'primary not guarded any more')
}
