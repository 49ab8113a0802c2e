import { gateDigestOf, gatePort } from '../../api/gate.ts'
import { isPodKind } from '../../api/labels.ts'
import { podAddress } from '../../api/pod-address.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { ReadPod } from '../act/read-pod.ts'
import type { GateState } from '../decide/snapshot.ts'
import { gateIdOf, gateStateOf } from '../observe/candidate.ts'
import { deriveToken, tokenOf, type WakeKeys } from './token.ts'
import type { wake } from './wake.ts'

export type GateResult =
  /** `openedGate` is the container ID of the gate that has opened; undefined if it had opened before. */
  | { readonly type: 'opened'; readonly openedGate: string | undefined }
  | { readonly type: 'failed'; readonly why: string }

export interface GateRequest {
  readonly ownerUid: string
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly to: 'primary' | 'hotbackup'
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Opens the gate through the agent of the pod's node; absent if no agent can. */
  readonly throughNode?: (order: string) => Promise<void>
}

export interface GateDeps {
  readonly pods: Store<Pod>
  readonly read: ReadPod
  readonly clock: Clock
  readonly wakeKeys: WakeKeys
  readonly wake: typeof wake
}

/**
 * If the gate has not answered after this time, ms, the pod's node gets the order. A healthy gate answers within 5 ms.
 */
const secondDoorMs = 500

/** A gate that refuses a connection is not listening yet or has just opened; the pod's status soon shows which. */
const retryMs = 100

/**
 * Opens the gate of a pod within one deadline, which covers the start of the gate, the connection and the answer. A
 * failure of the pod or the network is a result, not an exception. Since the caller deletes a pod whose gate failed, it
 * asks the API server first: a stale cache may not show that the gate has opened. @throws the signal's reason,
 * KubeError.
 */
export async function openGate(request: GateRequest, deps: GateDeps): Promise<GateResult> {
  const { pod, to, ownerUid, signal } = request
  const { clock, pods } = deps
  const key = keyOfRef(pod)
  const deadline = clock.monotonic() + request.timeoutMs
  const { throughNode } = request
  let firstTriedAt: number | undefined
  let asked = false
  let last = 'its gate did not start'
  while (clock.monotonic() < deadline) {
    const current = pods.get(key)
    const gate = gateOf(current, pod.uid)
    if (current === undefined || gate === undefined) {
      last = 'the pod is gone'
      break
    }
    if (gate === 'open' || gate === 'none') return { type: 'opened', openedGate: undefined }
    const host = podAddress(current.status?.podIP, 'pod')
    // If no token matches, try the current one all the same: only the gate itself can deny it.
    const token =
      tokenOf(deps.wakeKeys, ownerUid, pod.name, gateDigestOf(current)) ??
      deriveToken(deps.wakeKeys[0], ownerUid, pod.name)
    if (gate === 'waiting' && host !== undefined) {
      firstTriedAt ??= clock.monotonic()
      const reply = await deps.wake({
        host,
        port: gatePort,
        token,
        kind: to,
        // With a second path, a slow attempt must not hide that the gate has opened through it.
        timeoutMs: Math.max(
          1,
          Math.min(throughNode ? secondDoorMs : request.timeoutMs, deadline - clock.monotonic()),
        ),
        signal,
      })
      signal.throwIfAborted()
      if ('atNs' in reply) return { type: 'opened', openedGate: gateIdOf(current) }
      last = `${reply.type}: ${reply.detail}`
      // Other failures may be temporary: a gate at its connection limit drops the oldest connection as malformed.
      if (reply.type === 'denied') break
      // Once is enough: the order stays on the pod.
      if (throughNode && !asked && clock.monotonic() - firstTriedAt >= secondDoorMs) {
        asked = true
        await throughNode(`${to} ${token}`)
      }
    }
    await nextChange(pods, key, clock, Math.min(retryMs, deadline - clock.monotonic()), signal)
  }
  const now = gateOf(await deps.read(pod, signal), pod.uid)
  return now === 'open' || now === 'none'
    ? { type: 'opened', openedGate: undefined }
    : { type: 'failed', why: last }
}

/** Returns the gate state of exactly this pod; undefined: it no longer exists. */
function gateOf(pod: Pod | undefined, uid: string): GateState | undefined {
  if (pod?.metadata.uid !== uid || pod.metadata.deletionTimestamp !== undefined) return undefined
  return isPodKind(kindLabelOf(pod)) ? gateStateOf(pod) : 'none'
}

/** Resolves when the pod changes in the cache, or after `ms` at the latest. */
async function nextChange(
  pods: Store<Pod>,
  key: string,
  clock: Clock,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const changed = new AbortController()
  const unsubscribe = pods.subscribe(({ object }) => {
    if (keyOfRef(object.metadata) === key) changed.abort()
  })
  try {
    await clock.sleep(Math.max(0, ms), AbortSignal.any([signal, changed.signal]))
  } catch (error) {
    if (!changed.signal.aborted || signal.aborted) throw error
  } finally {
    unsubscribe()
  }
}
