import type { Dispatcher } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { podAddress } from '../../api/pod-address.ts'
import { pushState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import { isReady } from '../../kube/ready.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { ReadPod } from '../act/read-pod.ts'
import type { GiveResult } from '../decide/pulled-view.ts'
import { isFinished } from '../observe/candidate.ts'
import { containerOf } from './container.ts'
import type { SavedState } from './states.ts'

export interface GiveRequest {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly pull: ParsedPull
  readonly state: SavedState
  readonly signal: AbortSignal
}

/** Attempts at a ready pod; at a pod that is starting, attempts continue until the deadline. */
const triesWhenReady = 3
const firstPauseMs = 100
const longestPauseMs = 1_000

/**
 * Gives a state to a pod; retries while the app starts, until it has taken the state. A failure of the pod or the
 * network is a result, not an exception. @throws the signal's reason.
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
    // A pod that was just created may not be in the cache yet.
    if (current !== undefined) {
      if (isAnother({ pod: current }, pod.uid)) return { type: 'gone', why: 'the pod is gone' }
      const container = containerOf(current, pull.container)
      // The address in the cache may belong to another user's pod by now: the state must not leak to it.
      const now = container.running ? await readNow(read, pod, signal) : undefined
      if (now !== undefined && now !== 'unknown' && isAnother(now, pod.uid))
        return { type: 'gone', why: 'the pod is gone' }
      if (now === 'unknown') last = 'the API server shows no address of it'
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
