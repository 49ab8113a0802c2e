import type { Dispatcher } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { podAddress } from '../../api/pod-address.ts'
import { pushState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { ReadPod } from '../act/read-pod.ts'
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
    read,
  }: {
    readonly pods: Store<Pod>
    readonly clock: Clock
    readonly dispatcher: Dispatcher
    readonly read: ReadPod
  },
): Promise<GiveResult> {
  const deadline = clock.monotonic() + pull.restoreMs
  let last = 'its containers did not start'
  let whenReady = 0
  let pauseMs = firstPauseMs
  for (;;) {
    const current = pods.get(keyOfRef(pod))
    // A pod that was made a moment ago need not be in the cache.
    if (current !== undefined) {
      if (isAnother({ pod: current }, pod.uid)) return { type: 'gone', why: 'the pod is gone' }
      const container = containerOf(current, pull.container)
      // The address in a cache may have been given to somebody else's pod since: what is kept is told to nobody else.
      const now = container.running ? await readNow(read, pod, signal) : undefined
      if (now !== undefined && now !== 'unknown' && isAnother(now, pod.uid))
        return { type: 'gone', why: 'the pod is gone' }
      if (now === 'unknown') last = 'the API server does not say which address it has'
      const ip = now === 'unknown' ? undefined : podAddress(now?.pod?.status?.podIP, 'pod')
      if (ip !== undefined) {
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

/** `unknown`: the API server does not answer. */
async function readNow(
  read: ReadPod,
  ref: GiveRequest['pod'],
  signal: AbortSignal,
): Promise<{ readonly pod: Pod | undefined } | 'unknown'> {
  try {
    return { pod: await read(ref, signal) }
  } catch {
    signal.throwIfAborted()
    return 'unknown'
  }
}

const isAnother = ({ pod }: { readonly pod: Pod | undefined }, uid: string): boolean =>
  pod === undefined ||
  pod.metadata.uid !== uid ||
  pod.metadata.deletionTimestamp !== undefined ||
  isFinished(pod)

const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
