import type { BroughtBack } from '../../api/pod-contract.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { isFinished } from '../observe/candidate.ts'
import { stageOf } from '../observe/stage.ts'
import type { ReadPod } from './read-pod.ts'

export interface ServingRequest {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export type ServingResult =
  /** `resourceVersion` is that of the serving pod; the version before the promotion is outdated. */
  | {
      readonly type: 'serving'
      readonly ip: string | undefined
      readonly resourceVersion: string
      /** The memory with which it continues; undefined if its agent does not report it. */
      readonly memory: BroughtBack | undefined
    }
  | { readonly type: 'failed'; readonly why: string }

/**
 * Waits until the cache shows that a pod is on stage or that it has failed. A failure of the pod or its agent is a
 * result, not an exception. Failures are confirmed with the API server: with a stale watch we would call another pod
 * and discard the memory of a pod that serves already. @throws the signal's reason; KubeError if the API server does
 * not answer.
 */
export async function awaitServing(
  { timeoutMs, signal, uid, ...ref }: ServingRequest,
  { pods, clock, read }: { readonly pods: Store<Pod>; readonly clock: Clock; readonly read: ReadPod },
): Promise<ServingResult> {
  const key = keyOfRef(ref)
  const settled = new AbortController()
  let result: ServingResult | undefined
  const look = () => {
    result ??= resultOf(pods.get(key), uid)
    if (result !== undefined) settled.abort()
  }
  const unsubscribe = pods.subscribe(({ object }) => {
    if (keyOfRef(object.metadata) === key) look()
  })
  try {
    look()
    await clock.sleep(timeoutMs, AbortSignal.any([signal, settled.signal]))
  } catch (error) {
    if (result === undefined || signal.aborted) throw error
  } finally {
    unsubscribe()
  }
  if (result?.type === 'serving') return result
  const late = {
    type: 'failed',
    why: `it did not serve within ${Math.round(timeoutMs / 1000)} s`,
  } as const
  return resultOf(await read(ref, signal), uid) ?? result ?? late
}

function resultOf(pod: Pod | undefined, uid: string): ServingResult | undefined {
  if (pod?.metadata.uid !== uid || pod.metadata.deletionTimestamp !== undefined || isFinished(pod))
    return { type: 'failed', why: 'the pod is gone' }
  const { serving, died, failed, ip, memory } = stageOf(pod)
  if (died) return { type: 'failed', why: 'its app has ended' }
  if (failed !== undefined) return { type: 'failed', why: failed }
  return serving ? { type: 'serving', ip, resourceVersion: pod.metadata.resourceVersion, memory } : undefined
}
