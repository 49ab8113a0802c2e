/** Keeps running hot backups in step: each newer state of a slot is pushed to the backups that follow the slot. */
import type { Dispatcher } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { pushState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Candidate } from '../decide/snapshot.ts'
import type { StateBudget } from './budget.ts'
import type { PullMetrics } from './metrics.ts'
import type { SetRef } from './puller.ts'
import type { States } from './states.ts'

/** A hot backup and the slot whose state it gets. */
export interface Follower {
  readonly slot: number
  readonly name: string
  readonly uid: string
  /** Of its container: a push to an earlier run of it does no harm any more. */
  readonly restarts: number
}

export interface Refresher {
  /** Sets the followers of the set, replacing all earlier ones. `live`: uids of all its pods. */
  sync(set: SetRef, pull: ParsedPull, followers: readonly Follower[], live: ReadonlySet<string>): void
  /** A newer state of the slot has arrived. */
  offer(setUid: string, slot: number): void
  /**
   * Another process has led. It may have sent a state to each existing hot backup, and no process waits for the answers
   * now.
   */
  begin(): void
  /**
   * Stops pushes to this pod and waits for the outstanding answer. If another process sent the push, waits for as long
   * as an answer may take.
   * @returns false if there was no answer: the app may still take that state, after a later one.
   */
  quiet(
    pod: { readonly uid: string; readonly restarts: number },
    pull: Pick<ParsedPull, 'timeoutMs'>,
    signal: AbortSignal,
  ): Promise<boolean>
  stop(setUid?: string): void
  settled(): Promise<void>
}

export interface RefresherDeps {
  readonly states: Pick<States, 'get'>
  readonly budget: StateBudget
  readonly dispatcher: Dispatcher
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  readonly log: Log
  /** Uids of the hot backups that exist now. */
  readonly backups: () => Iterable<string>
  readonly metrics?: PullMetrics | undefined
  /**
   * Returns the address of this pod from the API server; undefined if it is no longer a hot backup. Called before each
   * push.
   * @throws KubeError.
   */
  readonly addressOf: (set: SetRef, follower: Follower, signal: AbortSignal) => Promise<string | undefined>
}

interface Entry {
  readonly set: SetRef
  pull: ParsedPull
  follower: Follower
  readonly stop: AbortController
  isDue: boolean
  isRunning: boolean
  problem: string | undefined
}

/**
 * Assigns the ready backups, in order of their names, to the slots in turn: the numbers of backups differ by at most
 * one.
 */
export function followersOf(views: readonly Candidate[]): Follower[] {
  const slots = [
    ...new Set(views.flatMap(pod => (pod.kind === 'primary' && pod.slot !== undefined ? [pod.slot] : []))),
  ].sort((a, b) => a - b)
  return views
    .filter(pod => pod.kind === 'hotbackup' && pod.ready && !pod.waking && pod.pulled?.running)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, uid, pulled }, index): Follower[] => {
      const slot = slots[index % slots.length]
      return slot === undefined ? [] : [{ slot, name, uid, restarts: pulled?.restarts ?? 0 }]
    })
}

export function createRefresher(deps: RefresherDeps): Refresher {
  const entries = new Map<string, Entry>()
  const running = new Map<string, { readonly done: Promise<void>; readonly entry: Entry }>()
  /** Pods that have not answered a push, by uid. */
  const doubts = new Map<string, { readonly setUid: string; readonly restarts: number }>()

  /**
   * Pods that another process may have pushed to, until they take a state from this process, and the latest time of
   * such a push.
   */
  const inherited = new Set<string>()
  let inheritedAt = 0

  const once = async ({ set, pull, follower, stop }: Entry): Promise<string | undefined> => {
    const state = deps.states.get(set.uid, follower.slot)
    if (state === undefined || state.hollow) return undefined
    let ip: string | undefined
    try {
      ip = await deps.addressOf(set, follower, stop.signal)
    } catch (error) {
      stop.signal.throwIfAborted()
      return `cannot read its address from the API server: ${error instanceof Error ? error.message : error}`
    }
    if (ip === undefined) return undefined
    // A state that is superseded during its transfer takes up memory beside the newer one.
    const room = deps.budget.reserve(set.namespace, 'renewed')
    if (!room.take(state.bytes.length)) {
      deps.metrics?.refreshed('no-room')
      return 'the operator has no room for it'
    }
    try {
      const doubt = { setUid: set.uid, restarts: follower.restarts }
      doubts.set(follower.uid, doubt)
      const result = await pushState(ip, pull, state, deps.dispatcher, stop.signal)
      deps.metrics?.refreshed(result.type)
      if (result.type === 'taken' || !result.inDoubt) doubts.delete(follower.uid)
      if (result.type === 'taken') inherited.delete(follower.uid)
      return result.type === 'taken' ? undefined : result.why
    } finally {
      room.release()
    }
  }

  const run = async (entry: Entry): Promise<void> => {
    while (entry.isDue && !entry.stop.signal.aborted && entries.get(entry.follower.uid) === entry) {
      entry.isDue = false
      const { set, follower } = entry
      const problem = await once(entry)
      if (problem !== undefined && entry.problem === undefined)
        deps.log.warn(
          { set: `${set.namespace}/${set.name}`, slot: follower.slot, pod: follower.name, why: problem },
          'cannot push the state to a hot backup',
        )
      entry.problem = problem
    }
  }

  const wake = (entry: Entry) => {
    entry.isDue = true
    const { uid } = entry.follower
    if (entry.isRunning) return
    entry.isRunning = true
    // One push at a time to a pod, even if its entry was recreated.
    const before = running.get(uid)?.done ?? Promise.resolve()
    const done = before
      .then(() => run(entry))
      .catch((error: unknown) => {
        if (!entry.stop.signal.aborted)
          deps.log.error({ err: error, pod: entry.follower.name }, 'push loop failed')
      })
      .finally(() => {
        entry.isRunning = false
        if (running.get(uid)?.done === done) running.delete(uid)
      })
    running.set(uid, { done, entry })
  }

  const stop = (setUid?: string) => {
    for (const [uid, entry] of entries)
      if (setUid === undefined || entry.set.uid === setUid) {
        entries.delete(uid)
        entry.stop.abort(new Error('this pod gets no more states'))
      }
    for (const { entry } of running.values())
      if (setUid === undefined || entry.set.uid === setUid)
        entry.stop.abort(new Error('its set or the leader term has ended'))
    for (const [uid, doubt] of doubts) if (doubt.setUid === setUid) doubts.delete(uid)
  }

  return {
    sync(set, pull, followers, live) {
      const wanted = new Set(followers.map(({ uid }) => uid))
      // A push in progress to a former follower may still arrive: it is not cancelled, and `quiet` waits for it.
      for (const [uid, entry] of entries)
        if (entry.set.uid === set.uid && !wanted.has(uid)) entries.delete(uid)
      for (const [uid, { setUid }] of doubts) if (setUid === set.uid && !live.has(uid)) doubts.delete(uid)
      for (const follower of followers) {
        const known = entries.get(follower.uid)
        if (known !== undefined) {
          const isSame =
            known.follower.slot === follower.slot && known.follower.restarts === follower.restarts
          known.pull = pull
          known.follower = follower
          if (!isSame) wake(known)
          continue
        }
        const entry: Entry = {
          ...{ set, pull, follower, stop: new AbortController() },
          ...{ isDue: false, isRunning: false, problem: undefined },
        }
        entries.set(follower.uid, entry)
        wake(entry)
      }
    },
    offer(setUid, slot) {
      for (const entry of entries.values())
        if (entry.set.uid === setUid && entry.follower.slot === slot) wake(entry)
    },
    begin() {
      inherited.clear()
      for (const uid of deps.backups()) inherited.add(uid)
      inheritedAt = deps.clock.monotonic()
    },
    async quiet({ uid, restarts }, { timeoutMs }, signal) {
      entries.delete(uid)
      await running.get(uid)?.done
      const leftMs = inheritedAt + timeoutMs - deps.clock.monotonic()
      if (inherited.has(uid) && leftMs > 0) await deps.clock.sleep(leftMs, signal)
      inherited.delete(uid)
      return doubts.get(uid)?.restarts !== restarts
    },
    stop,
    async settled() {
      await Promise.allSettled([...running.values()].map(({ done }) => done))
    },
  }
}
