import { gateContainerName, gateDigestOf, gatePort, isAtGate } from '../../api/gate.ts'
import { podAddress } from '../../api/pod-address.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Clock } from '../../kube/clock.ts'
import { createMemo } from '../../kube/memo.ts'
import type { Pod } from '../../kube/resources.ts'
import { perTerm, type Terms } from '../act/term.ts'
import { gateIdOf } from '../observe/candidate.ts'
import type { reach } from './reach.ts'
import { tokenOf, type WakeKeys } from './token.ts'

/**
 * Tests whether the cold backups of one set could be woken, before they are needed. The kubelet considers a gate healthy
 * even if the operator cannot reach it, for example because a policy drops its port, or if it has the digest of another
 * set's token.
 */
export interface GateChecks {
  /**
   * Call once a pass with the live pods of the set; connects in the background when a check is due.
   * @returns the problems of gates, for display, ordered by pod name.
   */
  look(pods: Iterable<Pod>): readonly string[]
}

export interface GateChecksOptions {
  readonly setUid: string
  readonly clock: Clock
  readonly wakeKeys: WakeKeys
  readonly reach: typeof reach
  readonly limit: CheckLimit
  readonly terms: Pick<Terms, 'current'>
  /** Fires when the set is deleted. */
  readonly life: AbortSignal
  /** The results have changed, or will after this time, ms. */
  readonly changed: (afterMs: number) => void
}

/** The checks that run now, of all sets together. */
export interface CheckLimit {
  running: number
}

export const createCheckLimit = (): CheckLimit => ({ running: 0 })

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

export function createGateChecks(options: GateChecksOptions): GateChecks {
  const { setUid, clock, wakeKeys, limit, terms, life, changed } = options
  const ofTerm = perTerm(terms, ({ leads }) => ({ leads, checks: new Map<string, Check>() }))
  // Cached for each pod version: a pass looks at all pods, and computing a digest takes longer than most of the pass.
  const opensTo = createMemo(
    (pod: Pod) => tokenOf(wakeKeys, setUid, pod.metadata.name, gateDigestOf(pod)) !== undefined,
  )

  const tryOnce = async (pod: Pod, host: string, failures: number) => {
    const state = ofTerm()
    const gateId = gateIdOf(pod)
    limit.running += 1
    const why = await options
      .reach({ host, port: gatePort, timeoutMs, signal: state.leads, clock })
      .catch(() => undefined)
      .finally(() => {
        limit.running -= 1
      })
    const { uid } = pod.metadata
    // The set, the pod or this gate no longer exists, or the term has ended.
    if (state.leads.aborted || life.aborted || state.checks.get(uid)?.gateId !== gateId) return
    const now = why === undefined ? 0 : failures + 1
    state.checks.set(uid, { gateId, at: clock.monotonic(), failures: now, why })
    if (why !== undefined) changed(now === 1 ? failedMs : 0)
    else if (failures > 0) changed(0)
  }

  /** @returns true if the check is due, and too many others run. */
  const tryIfDue = (pod: Pod, host: string, check: Check, checks: Map<string, Check>): boolean => {
    if (check.at === undefined) return false
    const pauseMs = check.failures === 0 ? againMs : failedMs
    const leftMs = check.at + pauseMs - clock.monotonic()
    if (leftMs > 0) {
      // A timer may fire early, and the next resync is far away.
      if (check.failures > 0) changed(leftMs)
      return false
    }
    if (limit.running >= atOnce || terms.current().leads.aborted) return true
    checks.set(pod.metadata.uid, { ...check, at: undefined })
    void tryOnce(pod, host, check.failures)
    return false
  }

  return {
    look(pods) {
      const state = ofTerm()
      const before = state.checks
      const checks = new Map<string, Check>()
      state.checks = checks
      const problems: string[] = []
      let isLeft = false
      const byName = [...pods].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      for (const pod of byName) {
        if (kindLabelOf(pod) !== 'coldbackup' || !isAtGate(pod)) continue
        const command = gateCommandOf(pod)
        const host = podAddress(pod.status?.podIP, 'pod')
        if (!host || !command) continue
        const { name, uid } = pod.metadata
        if (!opensTo(pod)) {
          problems.push(`the gate of ${name} accepts no token of this set`)
          continue
        }
        // The node's agent can open it in another way.
        if (command.includes('--socket')) continue
        const known = before.get(uid)
        const check: Check =
          known !== undefined && known.gateId === gateIdOf(pod)
            ? known
            : { gateId: gateIdOf(pod), at: Number.NEGATIVE_INFINITY, failures: 0, why: undefined }
        checks.set(uid, check)
        if (check.failures > 1) problems.push(`the gate of ${name} cannot be reached: ${check.why}`)
        if (tryIfDue(pod, host, check, checks)) isLeft = true
      }
      if (isLeft && !state.leads.aborted) changed(timeoutMs)
      return problems
    },
  }
}

const gateCommandOf = ({ spec }: Pod): readonly string[] | undefined =>
  spec?.initContainers?.find(({ name }) => name === gateContainerName)?.command
