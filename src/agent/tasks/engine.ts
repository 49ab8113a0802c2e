/** Turns events into work: takes a snapshot, decides, and drives tasks, report and conditions. */

import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import { slotAnnotations } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import type { Random } from '../../kube/random.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { desiredTasks } from '../decide/desired-tasks.ts'
import { isUntold } from '../decide/grants.ts'
import { replicateKey } from '../decide/holder-tasks.ts'
import { slotReportsOf } from '../decide/slot-reports.ts'
import type { Task } from '../decide/task.ts'
import { conditionToWrite } from '../decide/understudy-condition.ts'
import { unnoticedEndOf } from '../decide/unnoticed-end.ts'
import type { PodView } from '../observe/snapshot.ts'
import { isEnd, reasonOf } from '../report/failure.ts'
import type { AgentMetrics } from '../report/metrics.ts'
import type { Death } from '../sentinel/client.ts'
import type { Deaths } from '../state/deaths.ts'
import type { Paces } from '../state/paces.ts'
import type { Progress } from '../state/progress.ts'
import { createUnwanted } from '../state/unwanted.ts'
import { type ConditionWriterOptions, createConditionWriter } from './condition-writer.ts'
import { eventActions } from './event-actions.ts'
import { perform } from './perform.ts'
import type { Present } from './present.ts'
import { createTasks } from './runner.ts'
import { endGone } from './stop-primary.ts'
import type { TaskContext } from './task-context.ts'

export interface Engine {
  /** True once this node knows which memory it keeps. */
  isReady(): boolean
  /** Schedules a pass; one pass covers all changes until it runs. */
  changed(): void
  /** From the sentinel. Takes a snapshot first: the latest one may be older than the agent's long start. */
  onDeath(death: Death): void
  /**
   * Starts only tasks that stop or redirect a pod, until `run` does the rest. An app that still runs although another
   * pod is on stage, or although its pod is gone, must not wait until this node knows which memory it keeps.
   */
  begin(signal: AbortSignal): void
  /** Removes memory that no slot wants, for memory that has no room. */
  makeWay(): Promise<void>
  /** Works until the signal fires. Clones, watches and redirects stay as they are then. */
  run(signal: AbortSignal): Promise<void>
}

export interface EngineOptions {
  readonly present: Present
  readonly context: TaskContext
  readonly deaths: Deaths
  readonly store: Pick<GenerationStore, 'latest' | 'list' | 'remove'>
  readonly progress: Progress
  readonly paces: Pick<Paces, 'keepOnly'>
  readonly onDisk?: ((slot: string) => SlotReport['onDisk']) | undefined
  readonly diskRefusal?: ((slot: string) => string | undefined) | undefined
  readonly isRead?: ((slot: string) => boolean) | undefined
  /**
   * Publishes the report's slots, and the run of the sentinel whose promises and statements they contain; other code writes
   * the rest of the report.
   */
  readonly report: (slots: readonly SlotReport[], run: string | undefined) => void
  readonly patch: ConditionWriterOptions['patch']
  /** Every change of these causes a pass. */
  readonly stores: {
    readonly pods: Pick<Store<Pod>, 'subscribe'>
    readonly leases: Pick<Store<Lease>, 'subscribe' | 'list'>
    readonly reports: Pick<Store<NodeReport>, 'subscribe'>
  }
  /** Forgets everything that belongs to vanished pods of this node. */
  readonly sweepPods: (live: ReadonlySet<string>) => Promise<void>
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Ends the subscriptions. */
  readonly signal: AbortSignal
  /** Runs something soon. Default: `setImmediate`. */
  readonly defer?: ((run: () => void) => void) | undefined
}

/** Time at the end for writes that are on their way to the API server. */
const lastWordsMs = 2_000
const sweepEveryMs = 15_000
/** Interval at which the agent asks again whether a primary that its cache does not show is gone. */
const lookAgainMs = 5_000

export function createEngine(options: EngineOptions): Engine {
  const { present, context, deaths, store, stores, progress, report, metrics, clock, random, log } = options
  const { defer = setImmediate } = options
  let scheduled = false
  let ended: AbortSignal | undefined
  /** True until this node knows which memory it keeps. */
  let isBeginning = true
  /** Uids of vanished pods whose processes are being ended. */
  const leaving = new Set<string>()
  /** Uids of primaries whose pods are gone, and of which nothing runs here any more. */
  const endedPrimaries = new Set<string>()
  const unwanted = createUnwanted(clock)

  const changed = () => {
    if (scheduled) return
    scheduled = true
    defer(pass)
  }
  const conditions = createConditionWriter({ patch: options.patch, changed, clock, log })

  const tasks = createTasks<Task>({
    perform: (...about) => perform(context, ...about),
    onFailure: (task, error, { inMs }) => {
      const { reason, message } = reasonOf(error)
      metrics.failed(task.type, reason)
      const again = { task: task.key, reason, againInMs: Math.round(inMs) }
      // For an error with a code, code and message say all. The stack helps only to find a bug.
      if (reason === 'Unexpected') log.error({ ...again, err: error }, 'task failed')
      else log[isEnd(error) ? 'info' : 'warn']({ ...again, problem: message }, 'task failed')
      if (task.lease !== undefined) progress.failed(slotName(task.lease), reason, message)
      // Readers of a pod's events know of its end already, and can do nothing about errors of the API server.
      if ('pod' in task && !isEnd(error) && !isKubeError(error))
        context.event(task.pod, 'Warning', reason, eventActions[task.type], message)
    },
    clock,
    random,
  })

  const pass = () => {
    scheduled = false
    if (ended === undefined || ended.aborted) return
    present.look()
    const { snapshot } = present
    context.strangers.note(
      snapshot.slots,
      present.pods,
      lease => lease.ip ?? store.latest(lease)?.manifest.source.ip,
    )
    const here = snapshot.slots.filter(({ node }) => node === snapshot.node).map(({ holder }) => holder.uid)
    for (const uid of endedPrimaries) if (!here.includes(uid)) endedPrimaries.delete(uid)
    const known = [...deaths.known(), ...snapshot.fence.guarded.keys(), ...(isBeginning ? [] : here)]
    for (const uid of known) if (!present.pods.has(uid) && !endedPrimaries.has(uid)) leave(uid, ended)
    if (isBeginning) {
      tasks.want(desiredTasks(snapshot).filter(({ type }) => type === 'stopPrimary' || type === 'redirect'))
      return
    }
    for (const pod of snapshot.pods) inspect(pod)
    const wanted = desiredTasks(snapshot)
    tasks.want(wanted)
    metrics.tasks(countBy(wanted))
    const slots = new Set(snapshot.slots.map(slotName))
    progress.keepOnly(slots)
    options.paces.keepOnly(slots)
    context.fencing.keepOnly(slots)
    context.grants.keepOnly(snapshot.epochs, uid => isUntold(snapshot, present.podOf(uid)))
    const { active } = tasks
    report(
      slotReportsOf(snapshot, {
        isFetching: slot => active.has(replicateKey(slot)),
        isEnded: uid => endedPrimaries.has(uid),
        latest: lease => store.latest(lease),
        progress: progress.get,
        ...(options.onDisk === undefined ? {} : { onDisk: options.onDisk }),
        ...(options.diskRefusal === undefined ? {} : { diskRefusal: options.diskRefusal }),
        ...(options.isRead === undefined ? {} : { isRead: options.isRead }),
      }),
      snapshot.fence.run,
    )
    for (const pod of snapshot.pods) {
      const condition = conditionToWrite(snapshot, pod)
      if (condition !== undefined) conditions.write(pod, condition, ended)
    }
  }

  const leave = (uid: string, signal: AbortSignal) => {
    if (leaving.has(uid)) return
    leaving.add(uid)
    endGone(context, uid, signal)
      .then(async isGone => {
        deaths.forget(uid)
        if (isGone) endedPrimaries.add(uid)
        // The cache does not show it yet.
        else await clock.sleep(lookAgainMs, signal).catch(() => undefined)
      })
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

  /** Looks at a primary for an end that no sentinel has reported. */
  const inspect = (pod: PodView) => {
    const held = present.slotHeldBy(pod.uid)
    if (held === undefined) return
    const died = deaths.dead.get(pod.uid)
    if (died !== undefined && died !== held) deaths.revive(pod.uid)
    const isKnown = deaths.known().has(pod.uid)
    deaths.inspect(pod)
    const end = present.matters(pod) ? unnoticedEndOf(present.snapshot, pod, isKnown) : undefined
    if (end !== undefined) void deaths.declare(pod, end.container, end.what)
  }

  /** Removes generations that no slot wants on this node any more. */
  const removeUnwanted = async (which: 'due' | 'makingWay') => {
    present.look()
    const leases = stores.leases.list()
    if (leases.some(lease => lease.metadata.annotations?.[slotAnnotations.incarnation] === undefined)) return
    const kept = store.list().map(({ manifest }) => manifest.slot)
    for (const slot of unwanted[which](present.snapshot, kept)) {
      log.info({ slot: slotName(slot) }, 'unwanted generations removed')
      await store.remove(slot)
    }
  }
  const sweep = async () => {
    present.look()
    await options.sweepPods(new Set(present.pods.keys()))
    await removeUnwanted('due')
  }

  for (const each of Object.values(stores))
    options.signal.addEventListener('abort', each.subscribe(changed), { once: true })
  // Deaths may arrive from now on, and are judged by this snapshot of their pods.
  present.look()
  return {
    changed,
    isReady: () => !isBeginning,
    onDeath(death) {
      present.look()
      deaths.onDeath(death)
    },
    begin(signal) {
      ended = signal
      changed()
    },
    makeWay: async () => {
      if (isBeginning) return
      await removeUnwanted('makingWay').catch((error: unknown) =>
        log.warn({ err: error }, 'cannot make room'),
      )
    },
    async run(signal) {
      ended = signal
      isBeginning = false
      present.look()
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

function countBy(wanted: readonly Task[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { type } of wanted) counts.set(type, (counts.get(type) ?? 0) + 1)
  return counts
}
