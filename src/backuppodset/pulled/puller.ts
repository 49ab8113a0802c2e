import type { Dispatcher } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { type PullResult, pullState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Reservation, StateBudget } from './budget.ts'
import type { PullMetrics } from './metrics.ts'
import type { States } from './states.ts'
import type { Holder } from './view.ts'

/** A primary to be asked. */
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

/** Asks primaries for their state, each by a clock of its own: a slow one delays nobody. */
export interface Puller {
  /** These are the primaries of the set now, and no others. */
  sync(set: SetRef, pull: ParsedPull, targets: readonly Target[]): void
  /** Asks once more, now; resolves when that is done, whatever came of it. */
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
  /** This pod holds the slot, serves, and neither it nor its container is on the way out: asked after each answer. */
  readonly isCurrent: (set: SetRef, target: Target, container: string) => boolean
  /** The API server says that this address is that pod's: once for each address, before it is asked. @throws KubeError. */
  readonly confirms: (set: SetRef, target: Target, signal: AbortSignal) => Promise<boolean>
  /** A state came in. `isNew`: there was none, or a problem, before. */
  readonly changed: (set: SetRef, isNew: boolean) => void
  /** A newer state of the slot is here. */
  readonly committed?: (setUid: string, slot: number) => void
}

interface Loop {
  readonly set: SetRef
  readonly pull: ParsedPull
  readonly target: Target
  readonly stop: AbortController
  readonly done: Promise<void>
}

/** While a slot has no state at all it is asked again so soon, ms. */
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
    // What a pod answers while it goes is not worth more than what it said before.
    if (signal.aborted || !deps.isCurrent(set, target, pull.container)) return false
    deps.metrics?.pulled(set, resultOf(result), (endedAt - takenAt) / 1000)
    if (result.type === 'failed') {
      const known = states.problem(set.uid, slot)
      states.failed(set.uid, slot, result)
      if (known?.why !== result.why) {
        deps.log.warn(
          { set: `${set.namespace}/${set.name}`, slot, pod: holder.name, why: result.why },
          'no state',
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
      if (!stop.signal.aborted) deps.log.error({ err: error, slot: target.slot }, 'pulling ended')
    })
    return { set, pull, target, stop, done }
  }

  const stopping = new Set<Promise<void>>()
  const end = (key: string) => {
    const loop = loops.get(key)
    if (loop === undefined) return
    loops.delete(key)
    loop.stop.abort(new Error('no longer to be asked'))
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
        // The loop has ended meanwhile: what it has is what there is.
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
