/**
 * Incremental dumps of pods. Each dump of a tracked pod leaves the kernel with the record of all later writes, so the next one needs the very generation that this one became; anything else makes a full dump.
 */
import { readFile } from 'node:fs/promises'
import { isAgentError } from '../../api/agent-errors.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import { messageOf } from '../../kube/errors.ts'
import { isSame, type ProcessRef, refOf, treeOf, unlessGone } from '../container/process.ts'
import type { LocatedPod } from './memory-driver.ts'
import { mostTracked, startTracker, type Tracker, type TrackerDependencies } from './tracker.ts'

/** A full dump after so many increments: an error of the record cannot last longer. */
export const increments = 60

/** Most pods with a tracker: the sentinel runs 64 programs at once, and needs room for dumps and restores. */
const mostPods = 16

/** After so many failures one after the other, a pod is not tracked any more. */
const mostFailures = 3

/** Below this size of a process, a full copy costs less than to track it, bytes. */
const leastTracked = 16 * 1024 * 1024

/** The tracker's word for a process that lies to it: it does not lie by chance. */
const forged = 'forged'

/** Share of huge pages from which on a process is not tracked: the first write to a protected huge page splits it for good. */
const mostHuge = 0.1

/** The record that a dump may rely on. */
export interface TrackedDump {
  /** Directory of the generation since which the kernel has recorded all writes; absent: a full dump. */
  readonly since?: string
  /** Time for which processes were held in addition to the stop. */
  readonly heldMicroseconds: number
}

export interface Tracking {
  /**
   * Prepares a dump; undefined: an ordinary one.
   * @param base the newest generation of the pod's slot.
   * @param isRequested the caller counts on a short stop of the next dump, or of this one. Default: false.
   */
  begin(
    pod: LocatedPod,
    base: Base | undefined,
    signal: AbortSignal,
    isRequested?: boolean,
  ): Promise<TrackedDump | undefined>
  /** True if a dump of this pod could begin a record for the next one, and only requested dumps do. */
  recordsOnRequest(podUid: string): boolean
  /** Ends the record of a pod for which one was requested. */
  end(podUid: string): Promise<void>
  /** The dump has succeeded. @param reason why the next one must be full; absent: it need not. */
  done(podUid: string, takenAt: string, reason?: string): void
  /** The dump has failed. @param wrong the record was wrong: this pod is not tracked any more. */
  failed(podUid: string, wrong?: string): void
}

export interface Base {
  readonly dir: string
  readonly manifest: Pick<Manifest, 'takenAt' | 'source'>
}

interface State {
  tracker: Tracker | undefined
  roots: readonly ProcessRef[]
  /** `takenAt` of the dump that began the record; absent: there is none. */
  since: string | undefined
  /** Increments since the last full dump. */
  count: number
  /** Failures since the last answer of a tracker. */
  failures: number
  /** Absent: tracked. */
  off?: string
  /** Processes that are saved whole, as the log has them. */
  refused: string
}

export interface TrackingDependencies extends TrackerDependencies {
  readonly log: { warn(fields: object, message: string): void }
  /** Whether only requested dumps are tracked. */
  readonly isOnRequest: boolean
  /** False until the node has shown that its kernel can do it. */
  readonly isPossible: () => boolean
}

/** Tracks pods on a node whose kernel can do it. */
export function createTracking(deps: TrackingDependencies): Tracking {
  const states = new Map<string, State>()
  /** Given up, and not known to have ended: each still has a place among the programs of the sentinel. */
  const ending = new Set<Tracker>()
  const giveUp = async (tracker: Tracker | undefined) => {
    if (tracker === undefined) return
    ending.add(tracker)
    await tracker.close()
    if (await tracker.hasEnded()) ending.delete(tracker)
  }
  const giveUpThatOf = async (state: State) => {
    const { tracker } = state
    state.tracker = undefined
    await giveUp(tracker)
  }
  const turnOff = async (podUid: string, state: State, off: string) => {
    deps.log.warn({ podUid, reason: off }, 'the writes of this pod are not recorded: its dumps are full')
    state.off = off
    state.since = undefined
    await giveUpThatOf(state)
  }
  let starting = 0
  const start = async (signal: AbortSignal) => {
    starting += 1
    try {
      return await startTracker(deps, signal)
    } finally {
      starting -= 1
    }
  }
  const trackers = () =>
    starting + ending.size + [...states.values()].filter(({ tracker }) => tracker !== undefined).length
  const forgetEnded = async () => {
    for (const tracker of [...ending]) if (await tracker.hasEnded()) ending.delete(tracker)
    for (const [podUid, state] of [...states]) {
      const { roots } = state
      const live = await Promise.all(roots.map(root => isSame(deps.fs, root)))
      // Meanwhile another dump may have begun with new processes of this pod.
      if (live.some(Boolean) || states.get(podUid) !== state || state.roots !== roots) continue
      states.delete(podUid)
      await giveUpThatOf(state)
    }
  }
  const mayTrack = (isRequested: boolean) => deps.isPossible() && (isRequested || !deps.isOnRequest)
  return {
    recordsOnRequest: podUid =>
      deps.isOnRequest && deps.isPossible() && states.get(podUid)?.off === undefined,
    async end(podUid) {
      const state = states.get(podUid)
      if (!deps.isOnRequest || state === undefined) return
      // A pod that is not tracked any more stays so, and its failures count from one request to the next.
      if (state.off === undefined && state.failures === 0) states.delete(podUid)
      await giveUpThatOf(state)
    },
    async begin({ pod, containers }, base, signal, isRequested = false) {
      await forgetEnded()
      const state: State = states.get(pod.uid) ?? {
        tracker: undefined,
        since: undefined,
        roots: [],
        count: 0,
        failures: 0,
        refused: '',
      }
      states.set(pod.uid, state)
      state.roots = containers.flatMap(({ app }) => app ?? [])
      const { since } = state
      // Until this dump has succeeded, no generation is the one since which writes are recorded.
      state.since = undefined
      if (state.off !== undefined || !mayTrack(isRequested)) return undefined
      try {
        const processes = await worthTracking(deps, state.roots, state.tracker === undefined)
        if (typeof processes === 'string') {
          await turnOff(pod.uid, state, processes)
          return undefined
        }
        if (processes.length === 0 || (state.tracker === undefined && trackers() >= mostPods))
          return undefined
        state.tracker ??= await start(signal)
        // Meanwhile its processes have ended, and another dump has forgotten it: no state would count this tracker.
        if (states.get(pod.uid) !== state) {
          await giveUpThatOf(state)
          return undefined
        }
        const { heldMicroseconds, refused } = await state.tracker.prepare(processes, signal)
        state.failures = 0
        if ([...refused.values()].includes(forged)) {
          await turnOff(pod.uid, state, 'a process has answered with something else than a userfaultfd')
          return undefined
        }
        const text = [...refused].map(([pid, why]) => `${pid}: ${why}`).join(', ')
        if (text !== state.refused && text !== '')
          deps.log.warn({ podUid: pod.uid, refused: text }, 'processes whose new memory is saved whole')
        state.refused = text
        const known =
          base !== undefined && base.manifest.takenAt === since && base.manifest.source.podUid === pod.uid
        const isIncrement = known && state.count < increments
        state.count = isIncrement ? state.count + 1 : 0
        return { heldMicroseconds, ...(isIncrement ? { since: base.dir } : {}) }
      } catch (error) {
        signal.throwIfAborted()
        if (!isAgentError(error)) throw error
        // Another start would fail as well, after a wait.
        state.failures += 1
        const isStart = state.tracker === undefined && isAgentError(error, 'TrackerFailed')
        if (isStart || state.failures >= mostFailures) {
          await turnOff(pod.uid, state, messageOf(error))
          return undefined
        }
        await giveUpThatOf(state)
        deps.log.warn({ podUid: pod.uid, err: messageOf(error) }, 'cannot record writes: a full dump')
        return undefined
      }
    },
    done(podUid, takenAt, reason) {
      const state = states.get(podUid)
      if (state === undefined || state.off !== undefined) return
      state.since = reason === undefined ? takenAt : undefined
    },
    failed(podUid, wrong) {
      const state = states.get(podUid)
      if (state === undefined) return
      state.since = undefined
      if (wrong !== undefined) void turnOff(podUid, state, wrong)
    },
  }
}

/**
 * Returns the large processes of these trees, or why they should not be tracked.
 * @param isFirst looks for huge pages as well, which reads all page tables.
 */
async function worthTracking(
  { fs }: Pick<TrackerDependencies, 'fs'>,
  roots: readonly ProcessRef[],
  isFirst: boolean,
): Promise<readonly ProcessRef[] | string> {
  const found: { readonly process: ProcessRef; readonly bytes: number }[] = []
  for (const root of roots)
    for (const pid of await treeOf(fs, root.pid, mostLooked)) {
      const bytes = await anonymousBytes(`${fs.proc}/${pid}/status`, 'RssAnon')
      if (bytes < leastTracked) continue
      if (isFirst) {
        const huge = await anonymousBytes(`${fs.proc}/${pid}/smaps_rollup`, 'AnonHugePages')
        if (huge > bytes * mostHuge) return `process ${pid} uses huge pages, and would lose them`
      }
      const process = await refOf(fs, pid).catch(() => undefined)
      if (process !== undefined && (await isSame(fs, process))) found.push({ process, bytes })
    }
  return found
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, mostTracked)
    .map(({ process }) => process)
}

/** Processes of a tree that are looked at. */
const mostLooked = 1_000

async function anonymousBytes(path: string, field: string): Promise<number> {
  const text = await unlessGone(readFile(path, 'utf8'))
  const [, kibibytes] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text ?? '') ?? []
  return Number(kibibytes ?? 0) * 1024
}
