/** Time that passes only when no work is left: minutes take milliseconds, and a round repeats exactly. */
import type { Clock } from '../../../src/kube/clock.ts'
import { createHeap } from '../../../src/kube/heap.ts'

/** A process or a machine's kernel: it can end, be paused, and have a wall clock of its own. */
export interface Party {
  readonly name: string
  /** False: it has ended, and its waits never resolve. */
  alive: boolean
  /** True: it is paused, as by SIGSTOP or with its machine; events that become due meanwhile happen when it resumes. */
  paused: boolean
  /** Milliseconds by which its wall clock is ahead of true time. */
  wallOffsetMs: number
}

export interface VirtualTime {
  /** ms since 1970; the parties' wall clocks show this plus the true time. */
  readonly epoch: number
  /** True time, ms. */
  now(): number
  createParty(name: string): Party
  clockOf(party: Party): Clock
  /** Runs a function after this many ms, unless its party has ended by then. */
  after(party: Party, ms: number, run: () => void): void
  resume(party: Party): void
  /** Lets time pass until this moment. */
  runUntil(ms: number): Promise<void>
  /** How many steps have been made. */
  readonly steps: number
}

interface Event {
  readonly at: number
  readonly party: Party
  readonly run: () => void
  cancelled: boolean
}

/** A running call of `runUntil`. */
interface Run {
  readonly end: number
  readonly real: typeof setImmediate
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export const epoch = Date.UTC(2030, 0, 1)

/**
 * Number of immediates requested at once. Between two of them Node runs every promise chain to its next real wait.
 * Between two batches it also polls the kernel, which takes longer than a turn.
 */
const turnsAtOnce = 512

export function createVirtualTime(): VirtualTime {
  let now = 0
  let sequence = 0
  let steps = 0
  const due = createHeap<Event & { readonly order: number; place: number }>(
    (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order),
  )
  const held = new Map<Party, (() => void)[]>()

  const schedule = (party: Party, ms: number, run: () => void) => {
    sequence += 1
    const event = { at: now + Math.max(ms, 0), party, run, cancelled: false, order: sequence, place: -1 }
    due.push(event)
    return event
  }
  const perform = (party: Party, run: () => void) => {
    if (!party.alive) return
    if (!party.paused) {
      run()
      return
    }
    const waiting = held.get(party) ?? []
    waiting.push(run)
    held.set(party, waiting)
  }
  /**
   * Callbacks that the code under test deferred to the next turn of the event loop; they run before any time passes.
   */
  const turns: (() => void)[] = []

  /** Runs the next deferred callback, or else the next due events. Returns false if nothing is due until `end`. */
  const step = (end: number): boolean => {
    const turn = turns.shift()
    if (turn !== undefined) {
      turn()
      return true
    }
    let isMade = false
    for (;;) {
      const next = due.peek()
      // Events due at the same moment all run before the consequences of the first one.
      if (next === undefined || next.at > (isMade ? now : end)) return isMade
      due.pop()
      if (next.cancelled) continue
      now = next.at
      steps += 1
      isMade = true
      perform(next.party, next.run)
    }
  }

  /** Immediates that were requested and have not run yet; the next run uses those that a run leaves. */
  let asked = 0
  let current: Run | undefined
  const ask = (real: typeof setImmediate) => {
    for (; asked < turnsAtOnce; asked += 1) real(turn)
  }
  const turn = () => {
    asked -= 1
    const run = current
    if (run === undefined) return
    try {
      if (!step(run.end)) {
        current = undefined
        run.resolve()
      }
    } catch (error) {
      current = undefined
      run.reject(error)
    }
    if (asked === 0 && current !== undefined) ask(run.real)
  }

  return {
    epoch,
    now: () => now,
    get steps() {
      return steps
    },
    createParty: name => ({ name, alive: true, paused: false, wallOffsetMs: 0 }),
    clockOf: party => ({
      now: () => epoch + now + party.wallOffsetMs,
      monotonic: () => now + 1_000_000,
      sleep: (ms, signal) =>
        new Promise<void>((resolve, reject) => {
          if (signal?.aborted) {
            reject(signal.reason)
            return
          }
          const onAbort = () => {
            event.cancelled = true
            reject(signal?.reason)
          }
          const event = schedule(party, ms, () => {
            signal?.removeEventListener('abort', onAbort)
            resolve()
          })
          signal?.addEventListener('abort', onAbort, { once: true })
        }),
    }),
    after: schedule,
    resume(party) {
      party.paused = false
      const waiting = held.get(party) ?? []
      held.delete(party)
      for (const run of waiting) schedule(party, 0, run)
    },
    async runUntil(end) {
      const real = globalThis.setImmediate
      const putOff = (run: (...given: unknown[]) => void, ...given: unknown[]) =>
        void turns.push(() => run(...given))
      globalThis.setImmediate = putOff as unknown as typeof setImmediate
      try {
        await new Promise<void>((resolve, reject) => {
          current = { end, real, resolve, reject }
          if (asked === 0) ask(real)
        })
      } finally {
        globalThis.setImmediate = real
      }
      now = end
    },
  }
}
