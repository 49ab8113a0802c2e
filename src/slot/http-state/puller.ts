import type { Dispatcher } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { type PullResult, pullState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Holder } from '../decide/pulled-view.ts'
import type { Reservation, StateBudget } from './budget.ts'
import type { PullMetrics } from './metrics.ts'
import type { States } from './states.ts'

/** A primary to pull from. */
export interface Target {
  readonly slot: number
  readonly ip: string
  readonly holder: Holder
  /** The generation that the status names for this pod. */
  readonly floor: number
}

export interface SetRef {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** Pulls the states of primaries. Each has its own timer, so that a slow one delays no other. */
export interface Puller {
  /** Sets the primaries of the set, replacing all earlier ones. */
  sync(set: SetRef, pull: ParsedPull, targets: readonly Target[]): void
  /** Pulls once more, now; resolves when that has ended, with or without success. */
  now(setUid: string, slot: number, signal: AbortSignal): Promise<void>
  stop(setUid?: string): void
  settled(): Promise<void>
}

export interface PullerDeps {
  readonly states: States
  readonly budget: StateBudget
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly log: Log
  readonly metrics?: PullMetrics | undefined
  /**
   * Returns whether this pod is the slot's primary, serves, and neither it nor its container is ending. Checked after
   * each answer.
   */
  readonly isCurrent: (set: SetRef, target: Target, container: string) => boolean
  /**
   * Asks the API server whether this pod has this address; once for each address, before the first pull. @throws
   * KubeError.
   */
  readonly confirms: (set: SetRef, target: Target, signal: AbortSignal) => Promise<boolean>
  /** A state arrived. `isNew`: before, there was none, or there was a problem. */
  readonly changed: (set: SetRef, isNew: boolean) => void
  /** A newer state of the slot has arrived. */
  readonly committed?: (setUid: string, slot: number) => void
}

interface Loop {
  readonly set: SetRef
  readonly pull: ParsedPull
  readonly target: Target
  readonly stop: AbortController
  readonly done: Promise<void>
}

/** Pause between pulls while a slot has no state at all, ms. */
const firstRetryMs = 1_000

export function createPuller(deps: PullerDeps): Puller {
  const { states, clock } = deps
  const loops = new Map<string, Loop>()
  const confirmed = new WeakSet<Target>()
  const keyOf = (setUid: string, slot: number) => `${setUid}/${slot}`

  const once = async (
    set: SetRef,
    pull: ParsedPull,
    target: Target,
    signal: AbortSignal,
  ): Promise<boolean> => {
    if (!confirmed.has(target)) {
      const isConfirmed = await deps.confirms(set, target, signal).catch(() => false)
      if (signal.aborted || !isConfirmed) return false
      confirmed.add(target)
    }
    const isKept = states.get(set.uid, target.slot) !== undefined
    const room = deps.budget.reserve(set.namespace, isKept ? 'renewed' : 'kept')
    let isTaken = false
    try {
      isTaken = await pullInto(room, set, pull, target, signal)
      return isTaken
    } finally {
      if (!isTaken) room.release()
    }
  }

  const pullInto = async (
    room: Reservation,
    set: SetRef,
    pull: ParsedPull,
    target: Target,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const { slot, holder, floor, ip } = target
    const had = states.get(set.uid, slot) !== undefined && states.problem(set.uid, slot) === undefined
    const takenAt = clock.monotonic()
    const result = await pullState(ip, pull, deps.dispatcher, signal, room.take)
    const endedAt = clock.monotonic()
    // The answer of a pod that is ending is worth no more than its earlier ones.
    if (signal.aborted || !deps.isCurrent(set, target, pull.container)) return false
    deps.metrics?.pulled(set, resultOf(result), (endedAt - takenAt) / 1000)
    if (result.type === 'failed') {
      const known = states.problem(set.uid, slot)
      states.failed(set.uid, slot, result)
      if (known?.why !== result.why) {
        deps.log.warn(
          { set: `${set.namespace}/${set.name}`, slot, pod: holder.name, why: result.why },
          'cannot pull a state',
        )
        deps.changed(set, true)
      }
      return false
    }
    const isTaken = states.commit(set.uid, slot, holder, result.state, { takenAt, endedAt, floor }, room)
    if (isTaken) {
      deps.committed?.(set.uid, slot)
      deps.changed(set, !had)
    }
    return isTaken
  }

  const run = async (set: SetRef, pull: ParsedPull, target: Target, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const startedAt = clock.monotonic()
      const isTaken = await once(set, pull, target, signal)
      const pauseMs =
        isTaken || states.get(set.uid, target.slot) !== undefined
          ? pull.intervalMs
          : Math.min(firstRetryMs, pull.intervalMs)
      await clock.sleep(Math.max(0, startedAt + pauseMs - clock.monotonic()), signal)
    }
  }

  const start = (set: SetRef, pull: ParsedPull, target: Target): Loop => {
    const stop = new AbortController()
    const done = run(set, pull, target, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) deps.log.error({ err: error, slot: target.slot }, 'pull loop failed')
    })
    return { set, pull, target, stop, done }
  }

  const stopping = new Set<Promise<void>>()
  const end = (key: string) => {
    const loop = loops.get(key)
    if (loop === undefined) return
    loops.delete(key)
    loop.stop.abort(new Error('the pull loop was ended'))
    stopping.add(loop.done)
    void loop.done.finally(() => stopping.delete(loop.done))
  }

  return {
    sync(set, pull, targets) {
      const wanted = new Map(targets.map(target => [keyOf(set.uid, target.slot), target]))
      for (const [key, loop] of loops) if (loop.set.uid === set.uid && !wanted.has(key)) end(key)
      for (const [key, target] of wanted) {
        const known = loops.get(key)
        if (known !== undefined && isSame(known, pull, target)) continue
        end(key)
        loops.set(key, start(set, pull, target))
      }
    },
    async now(setUid, slot, signal) {
      const loop = loops.get(keyOf(setUid, slot))
      if (loop === undefined) return
      try {
        await once(loop.set, loop.pull, loop.target, AbortSignal.any([signal, loop.stop.signal]))
      } catch (error) {
        signal.throwIfAborted()
        // The loop has ended in the meantime: the current state is the last one.
        if (!loop.stop.signal.aborted) throw error
      }
    },
    stop(setUid) {
      for (const [key, loop] of loops) if (setUid === undefined || loop.set.uid === setUid) end(key)
    },
    settled: async () => {
      await Promise.allSettled(stopping)
    },
  }
}

const resultOf = (result: PullResult) => (result.type === 'state' ? 'ok' : result.reason)

function isSame({ target, pull }: Loop, nextPull: ParsedPull, next: Target): boolean {
  return (
    target.ip === next.ip &&
    target.holder.uid === next.holder.uid &&
    target.holder.restarts === next.holder.restarts &&
    target.holder.epoch === next.holder.epoch &&
    JSON.stringify(pull) === JSON.stringify(nextPull)
  )
}
