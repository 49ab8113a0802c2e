/** Turns events into work: takes a snapshot, decides, and drives tasks, report and conditions. */

import { isAgentError } from '../../api/agent-errors.ts'
import type { SlotReport } from '../../api/node-report.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import { slotAnnotations } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import { isEqual } from '../../kube/equal.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import type { Random } from '../../kube/random.ts'
import type { Lease } from '../../kube/resources.ts'
import type { PodCondition } from '../conditions.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { Death } from '../sentinel.ts'
import type { Deaths } from './deaths.ts'
import { anotherIn, dutiesOf, isAtStake, isServing, isToEnd, replicateKey } from './duties-of.ts'
import type { Duty } from './duty.ts'
import { reasonOf } from './failure.ts'
import { policiesOf } from './observe.ts'
import type { Paces } from './paces.ts'
import type { Progress } from './progress.ts'
import { revivalOf, slotReportsOf, understudyConditionOf } from './slot-reports.ts'
import type { PodView, Snapshot } from './snapshot.ts'
import { createTasks } from './tasks.ts'
import { createUnwanted } from './unwanted.ts'

export interface Engine {
  /** Schedules a pass; one pass covers all changes until it runs. */
  changed(): void
  /** The latest snapshot. */
  readonly snapshot: Snapshot
  podOf(uid: string): PodView | undefined
  slotHeldBy(uid: string): string | undefined
  /** The policy of a slot; undefined: it is unknown, or the slot is gone. */
  policyOf(slot: SlotKey): SlotPolicy | undefined
  /** Whether the primary with this uid is to be stopped at once; see `isToEnd`. */
  isToEnd(uid: string): boolean
  /** Name of the slot that this pod holds, or held; for the record. */
  slotOf(pod: PodView): string
  /** Whether the end of this pod's app is a death to declare; see `Deaths`. */
  matters(pod: PodView): boolean
  /** From the sentinel. Takes a snapshot first: the latest one may be older than the agent's long start. */
  onDeath(death: Death): void
  /**
   * Starts only tasks that stop or redirect a pod, until `run` does the rest. An app that still runs although another
   * pod is on stage, or although its pod is gone, must not wait until this node knows which memory it keeps.
   */
  begin(signal: AbortSignal): void
  /** Works until the signal fires. Clones, watches and redirects stay as they are then. */
  run(signal: AbortSignal): Promise<void>
}

export interface EngineOptions {
  readonly observe: () => Snapshot
  readonly perform: (duty: Duty, signal: AbortSignal, succeeded: () => void) => Promise<void>
  readonly deaths: Deaths
  readonly store: Pick<GenerationStore, 'latest' | 'list' | 'remove'>
  readonly progress: Progress
  readonly paces: Pick<Paces, 'keepOnly'>
  readonly onDisk?: (slot: string) => SlotReport['onDisk']
  readonly isRead?: (slot: string) => boolean
  /** Publishes the report's slots; other code writes the rest of the report. */
  readonly report: (slots: readonly SlotReport[]) => void
  readonly patch: (pod: PodView, condition: PodCondition, signal: AbortSignal) => Promise<boolean>
  /** Called when a known pod no longer exists: ends its processes that are left, and removes its watches. */
  readonly onGone: (uid: string, signal: AbortSignal) => Promise<void>
  /** Called when a policy or state has changed on which this pod's checkpoints depend. */
  readonly onRequest: (uid: string) => void
  readonly onTrouble: (pod: PodView, duty: Duty, reason: string, message: string) => void
  /** All Leases of slots in the cache. */
  readonly leases: () => readonly Lease[]
  /** Forgets everything that belongs to vanished pods of this node. */
  readonly sweepPods: (live: ReadonlySet<string>) => Promise<void>
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Runs something soon. Default: `setImmediate`. */
  readonly defer?: (run: () => void) => void
}

/** Time at the end for writes that are on their way to the API server. */
const lastWordsMs = 2_000
const sweepEveryMs = 15_000

export function createEngine(options: EngineOptions): Engine {
  const { observe, perform, deaths, store, progress, report, metrics, clock, random, log } = options
  const { defer = setImmediate } = options
  let snapshot = observe()
  let pods = new Map<string, PodView>()
  let held = new Map<string, string>()
  let scheduled = false
  let ended: AbortSignal | undefined
  /** True until this node knows which memory it keeps. */
  let isBeginning = true
  /** Uids of pods with a condition being written. */
  const patching = new Set<string>()
  /** Uids of vanished pods whose processes are being ended. */
  const leaving = new Set<string>()
  const unwanted = createUnwanted(clock)

  const tasks = createTasks<Duty>({
    perform,
    onFailure: (duty, error, { inMs }) => {
      const { reason, message } = reasonOf(error)
      metrics.failed(duty.type, reason)
      const again = { duty: duty.key, reason, againInMs: Math.round(inMs) }
      // For an error with a code, code and message say all. The stack helps only to find a bug.
      if (reason === 'Unexpected') log.error({ ...again, err: error }, 'task failed')
      else log[isEnd(error) ? 'info' : 'warn']({ ...again, problem: message }, 'task failed')
      if (duty.lease !== undefined) progress.failed(slotName(duty.lease), reason, message)
      // Readers of a pod's events know of its end already, and can do nothing about errors of the API server.
      if ('pod' in duty && !isEnd(error) && !isKubeError(error))
        options.onTrouble(duty.pod, duty, reason, message)
    },
    clock,
    random,
  })

  const look = () => {
    const before = pods
    const policiesBefore = policiesOf(snapshot.slots)
    snapshot = observe()
    pods = new Map(snapshot.pods.map(pod => [pod.uid, pod]))
    const policies = policiesOf(snapshot.slots)
    for (const pod of snapshot.pods) {
      const old = before.get(pod.uid)
      if (
        pod.checkpointRequest !== old?.checkpointRequest ||
        isServing(pod) !== (old !== undefined && isServing(old)) ||
        !isEqual(policies.get(pod.uid), policiesBefore.get(pod.uid))
      )
        options.onRequest(pod.uid)
    }
    held = new Map(snapshot.slots.map(lease => [lease.holder.uid, slotName(lease)]))
  }

  const pass = () => {
    scheduled = false
    if (ended === undefined || ended.aborted) return
    look()
    for (const uid of deaths.known()) if (!pods.has(uid)) leave(uid, ended)
    if (isBeginning) {
      tasks.want(dutiesOf(snapshot).filter(({ type }) => type === 'stopPrimary' || type === 'redirect'))
      return
    }
    for (const pod of snapshot.pods) if (held.has(pod.uid)) inspect(pod)
    const duties = dutiesOf(snapshot)
    tasks.want(duties)
    metrics.duties(countBy(duties))
    const slots = new Set(snapshot.slots.map(slotName))
    progress.keepOnly(slots)
    options.paces.keepOnly(slots)
    const { active } = tasks
    report(
      slotReportsOf(snapshot, {
        isFetching: slot => active.has(replicateKey(slot)),
        latest: lease => store.latest(lease),
        progress: progress.get,
        ...(options.onDisk === undefined ? {} : { onDisk: options.onDisk }),
        ...(options.isRead === undefined ? {} : { isRead: options.isRead }),
      }),
    )
    for (const pod of snapshot.pods) tell(pod, ended)
  }

  const leave = (uid: string, signal: AbortSignal) => {
    if (leaving.has(uid)) return
    leaving.add(uid)
    options
      .onGone(uid, signal)
      .then(() => deaths.forget(uid))
      .catch(async (error: unknown) => {
        if (!signal.aborted)
          log.warn({ err: error, uid }, 'cannot end the processes of a deleted pod, trying again')
        await clock.sleep(1_000, signal).catch(() => undefined)
      })
      .finally(() => {
        leaving.delete(uid)
        changed()
      })
  }

  const inspect = (pod: PodView) => {
    const died = deaths.dead.get(pod.uid)
    if (died !== undefined && died !== held.get(pod.uid)) deaths.revive(pod.uid)
    const isKnown = deaths.known().has(pod.uid)
    deaths.inspect(pod)
    if (pod.understudy || !matters(pod)) return
    const lease = snapshot.slots.find(({ holder }) => holder.uid === pod.uid)
    const other = lease && anotherIn(snapshot, lease, pod)
    if (other !== undefined) {
      void deaths.declare(pod, other.name, 'has ended; another container runs in its place')
      return
    }
    // Times have whole seconds, so they count only if the Lease does not name the containers of the memory.
    if (isKnown || lease?.containers !== undefined) return
    // No sentinel watched the pod, not even an earlier one. Its newest generation tells which run of the container it
    // is from.
    const kept = snapshot.kept.get(held.get(pod.uid) ?? '')
    const restarted = pod.containers.find(
      ({ startedAt = 0 }) => kept !== undefined && startedAt > kept.takenAt,
    )
    if (kept?.podUid === pod.uid && restarted !== undefined)
      void deaths.declare(pod, restarted.name, 'restarted while no sentinel watched it')
  }

  const tell = (pod: PodView, signal: AbortSignal) => {
    const revival = revivalOf(snapshot, pod)
    const condition = revival ?? understudyConditionOf(snapshot, pod)
    const present = revival === undefined ? pod.understudyState : pod.serving
    if (condition === undefined || patching.has(pod.uid)) return
    if (
      present?.status === condition.status &&
      present.reason === condition.reason &&
      present.message === condition.message
    )
      return
    patching.add(pod.uid)
    options
      .patch(pod, condition, signal)
      .catch(async (error: unknown) => {
        if (!signal.aborted) log.warn({ err: error, pod: pod.name }, 'cannot write a condition')
        await clock.sleep(1_000, signal).catch(() => undefined)
      })
      .finally(() => {
        patching.delete(pod.uid)
        changed()
      })
  }

  const changed = () => {
    if (scheduled) return
    scheduled = true
    defer(pass)
  }

  const matters = (pod: PodView): boolean => {
    const lease = snapshot.slots.find(({ holder }) => holder.uid === pod.uid)
    // The set has no place for its slot: the pod ends in its grace period, and gets no successor.
    if (pod.terminating && lease?.retainedSince !== undefined) return false
    // An understudy whose app has ended only holds the place: only a successor continues its memory.
    return lease !== undefined && (pod.understudy || pod.terminating || isAtStake(snapshot, lease))
  }

  /** Removes generations that no slot wants on this node any more. */
  const sweep = async () => {
    look()
    await options.sweepPods(new Set(pods.keys()))
    const leases = options.leases()
    if (leases.some(lease => lease.metadata.annotations?.[slotAnnotations.incarnation] === undefined)) return
    for (const slot of unwanted.due(
      snapshot,
      store.list().map(({ manifest }) => manifest.slot),
    )) {
      log.info({ slot: slotName(slot) }, 'unwanted generations removed')
      await store.remove(slot)
    }
  }

  // Deaths may arrive from now on, and are judged by this snapshot of their pods.
  look()
  return {
    changed,
    onDeath(death) {
      look()
      deaths.onDeath(death)
    },
    get snapshot() {
      return snapshot
    },
    podOf: uid => pods.get(uid),
    slotHeldBy: uid => held.get(uid),
    policyOf: slot => snapshot.slots.find(lease => slotName(lease) === slotName(slot))?.policy,
    isToEnd: uid => {
      const [pod, lease] = [pods.get(uid), snapshot.slots.find(({ holder }) => holder.uid === uid)]
      return pod !== undefined && lease !== undefined && isToEnd(snapshot, lease, pod)
    },
    slotOf: pod => held.get(pod.uid) ?? `${pod.namespace}.${pod.slot ?? '-'}`,
    matters,
    begin(signal) {
      ended = signal
      changed()
    },
    async run(signal) {
      ended = signal
      isBeginning = false
      look()
      changed()
      while (!signal.aborted) {
        await clock.sleep(sweepEveryMs, signal).catch(() => undefined)
        if (signal.aborted) break
        await sweep().catch((error: unknown) => log.warn({ err: error }, 'sweep failed'))
        changed()
      }
      await tasks.stop(signal.reason)
      // The next agent writes a death that cannot be written now: the sentinel keeps it.
      await Promise.race([deaths.settled(), clock.sleep(lastWordsMs)])
    },
  }
}

/** Errors that come with any end of a pod. */
const isEnd = (error: unknown): boolean =>
  isAgentError(error, 'ProcessGone', 'NotRunning', 'DumpVoid', 'NotCalled', 'StillCalled')

function countBy(duties: readonly Duty[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { type } of duties) counts.set(type, (counts.get(type) ?? 0) + 1)
  return counts
}
