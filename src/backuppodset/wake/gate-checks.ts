import { gateContainerName, gateDigestOf, gatePort, isAtGate } from '../../api/gate.ts'
import { podAddress } from '../../api/pod-address.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Clock } from '../../kube/clock.ts'
import { createMemo } from '../../kube/memo.ts'
import type { Pod } from '../../kube/resources.ts'
import { gateIdOf } from '../pod/candidate.ts'
import type { reach } from './reach.ts'
import { tokenOf, type WakeKeys } from './token.ts'

/**
 * Tests whether cold backups could be woken, before they are needed. The kubelet considers a gate healthy even if the
 * operator cannot reach it, for example because a policy drops its port, or if it has the digest of another set's
 * token.
 */
export interface GateChecks {
  /**
   * Call once a pass with the live pods of a set; connects in the background when a check is due.
   * @returns the problems of gates, for display, ordered by pod name.
   */
  look(set: { readonly key: string; readonly uid: string }, pods: Iterable<Pod>): readonly string[]
  /** Enables checks until the signal fires. */
  begin(signal: AbortSignal): void
  forget(setKey: string): void
}

export interface GateChecksOptions {
  readonly clock: Clock
  readonly wakeKeys: WakeKeys
  readonly reach: typeof reach
  /** The results for this set have changed, or will. */
  readonly changed: (setKey: string, afterMs: number) => void
}

interface Check {
  readonly gateId: string | undefined
  /** Monotonic ms; undefined: a check is in progress. */
  readonly at: number | undefined
  /** Consecutive failures. A single one does not count: the gate may have just started, or a packet was lost. */
  readonly failures: number
  readonly why: string | undefined
}

/** Interval of checks of a gate that answered, ms; policies change. */
const againMs = 3_600_000
/** Interval after a failure, ms. */
const failedMs = 5_000
const timeoutMs = 2_000
/** Limit for all sets together. */
const atOnce = 8

export function createGateChecks({ clock, wakeKeys, reach, changed }: GateChecksOptions): GateChecks {
  const bySet = new Map<string, Map<string, Check>>()
  let signal: AbortSignal | undefined
  let running = 0
  // Cached for each pod version: a pass looks at all pods, and computing a digest takes longer than most of the pass.
  const knownOf = createMemo((_: Pod) => new Map<string, boolean>())
  const opensTo = (pod: Pod, setUid: string): boolean => {
    const known = knownOf(pod)
    const opens =
      known.get(setUid) ?? tokenOf(wakeKeys, setUid, pod.metadata.name, gateDigestOf(pod)) !== undefined
    known.set(setUid, opens)
    return opens
  }

  const tryOnce = async (key: string, pod: Pod, host: string, failures: number, until: AbortSignal) => {
    const gateId = gateIdOf(pod)
    running += 1
    const why = await reach({ host, port: gatePort, timeoutMs, signal: until, clock })
      .catch(() => undefined)
      .finally(() => {
        running -= 1
      })
    const known = bySet.get(key)
    // The set, the pod or this gate no longer exists, or the term has ended.
    if (until.aborted || known?.get(pod.metadata.uid)?.gateId !== gateId) return
    const now = why === undefined ? 0 : failures + 1
    known?.set(pod.metadata.uid, { gateId, at: clock.monotonic(), failures: now, why })
    if (why !== undefined) changed(key, now === 1 ? failedMs : 0)
    else if (failures > 0) changed(key, 0)
  }

  return {
    begin(until) {
      signal = until
      bySet.clear()
    },
    forget: key => void bySet.delete(key),
    look({ key, uid }, pods) {
      const before = bySet.get(key)
      const checks = new Map<string, Check>()
      bySet.set(key, checks)
      const problems: string[] = []
      let isLeft = false
      const byName = [...pods].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      for (const pod of byName) {
        if (kindLabelOf(pod) !== 'coldbackup' || !isAtGate(pod)) continue
        const command = gateCommandOf(pod)
        const host = podAddress(pod.status?.podIP, 'pod')
        if (!host || !command) continue
        const { name, uid: podUid } = pod.metadata
        if (!opensTo(pod, uid)) {
          problems.push(`the gate of ${name} accepts no token of this set`)
          continue
        }
        // The node's agent can open it in another way.
        if (command.includes('--socket')) continue
        const known = before?.get(podUid)
        const check: Check =
          known !== undefined && known.gateId === gateIdOf(pod)
            ? known
            : { gateId: gateIdOf(pod), at: Number.NEGATIVE_INFINITY, failures: 0, why: undefined }
        checks.set(podUid, check)
        if (check.failures > 1) problems.push(`the gate of ${name} cannot be reached: ${check.why}`)
        const pauseMs = check.failures === 0 ? againMs : failedMs
        if (check.at === undefined) continue
        const leftMs = check.at + pauseMs - clock.monotonic()
        if (leftMs > 0) {
          // A timer may fire early, and the next resync is far away.
          if (check.failures > 0) changed(key, leftMs)
          continue
        }
        if (running >= atOnce || signal === undefined || signal.aborted) {
          isLeft = true
          continue
        }
        checks.set(podUid, { ...check, at: undefined })
        void tryOnce(key, pod, host, check.failures, signal)
      }
      if (isLeft && signal?.aborted === false) changed(key, timeoutMs)
      return problems
    },
  }
}

const gateCommandOf = ({ spec }: Pod): readonly string[] | undefined =>
  spec?.initContainers?.find(({ name }) => name === gateContainerName)?.command
