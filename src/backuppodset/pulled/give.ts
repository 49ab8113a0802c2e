import type { Dispatcher } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { pushState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { isFinished } from '../losses.ts'
import { containerOf } from './container.ts'
import type { SavedState } from './states.ts'

export interface GiveRequest {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly pull: ParsedPull
  readonly state: SavedState
  readonly signal: AbortSignal
}

export type GiveResult =
  /** `restarts` and `ip`: of the container that has taken it. */
  | { readonly type: 'taken'; readonly restarts: number; readonly ip: string }
  /** It runs and does not take it. */
  | { readonly type: 'refused'; readonly why: string }
  /** The pod is not any more what it was: nothing is said about the state. */
  | { readonly type: 'gone'; readonly why: string }

/** A pod that says that it is ready has so many tries; one that is starting has until the deadline. */
const triesWhenReady = 3
const firstPauseMs = 100
const longestPauseMs = 1_000

/**
 * Gives a state to a pod: again and again while its app starts, until it has taken it. Never throws for what the pod or
 * the network does. @throws the signal's reason.
 */
export async function giveState(
  { pod, pull, state, signal }: GiveRequest,
  {
    pods,
    clock,
    dispatcher,
  }: { readonly pods: Store<Pod>; readonly clock: Clock; readonly dispatcher: Dispatcher },
): Promise<GiveResult> {
  const deadline = clock.monotonic() + pull.restoreMs
  let last = 'its containers did not start'
  let whenReady = 0
  let pauseMs = firstPauseMs
  for (;;) {
    const current = pods.get(keyOfRef(pod))
    // A pod that was made a moment ago need not be in the cache.
    if (current !== undefined) {
      if (
        current.metadata.uid !== pod.uid ||
        current.metadata.deletionTimestamp !== undefined ||
        isFinished(current)
      )
        return { type: 'gone', why: 'the pod is gone' }
      const ip = current.status?.podIP
      const container = containerOf(current, pull.container)
      if (ip !== undefined && container.running) {
        const result = await pushState(ip, pull, state, dispatcher, signal)
        if (result.type === 'taken') return { type: 'taken', restarts: container.restarts, ip }
        last = result.why
        if (isReady(current)) whenReady += 1
        if (whenReady >= triesWhenReady) return { type: 'refused', why: last }
      }
    }
    const left = deadline - clock.monotonic()
    if (left <= 0) return { type: 'refused', why: `${last}, for ${pull.restoreMs / 1000} s` }
    await clock.sleep(Math.min(pauseMs, left), signal)
    pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)
  }
}

const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
