/** Injected time: no code of this kit reads the machine's clock directly. */

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch. For display and for other machines; it may jump. */
  now(): number
  /** Milliseconds on a clock that never jumps. For every interval, deadline and age. */
  monotonic(): number
  /**
   * Resolves after `ms` milliseconds.
   * @throws the signal's reason as soon as it fires, at once if it already has.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** setTimeout overflows to 1 ms above this many milliseconds (24.8 days). */
const longestTimeout = 2 ** 31 - 1

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const onAbort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        },
        Math.min(Math.max(ms, 0), longestTimeout),
      )
      signal?.addEventListener('abort', onAbort, { once: true })
    }),
})

/** True after `ms` milliseconds, false as soon as `end` fires. */
export async function elapses(clock: Clock, ms: number, end: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, end)
    return true
  } catch (error) {
    if (end.aborted) return false
    throw error
  }
}

/** A clock that only a test moves. */
export interface FakeClock extends Clock {
  /** Moves both clocks, waking the sleepers that are due in order of their time and letting each one run. */
  advance(ms: number): Promise<void>
  /** Moves only the wall clock, as NTP or a resumed machine does. */
  jump(ms: number): void
  /** How many sleepers wait now. */
  sleepers(): number
  /** Resolves when at least `count` sleepers wait. Shows a test that the code under test has reached its wait. */
  untilSleepers(count: number): Promise<void>
}

/** Creates a clock that stays at `start` until a test moves it. */
export function createFakeClock(
  start: { readonly now?: number; readonly monotonic?: number } = {},
): FakeClock {
  let wall = start.now ?? Date.UTC(2030, 0, 1)
  let steady = start.monotonic ?? 1_000
  const sleeping = new Set<{ readonly at: number; readonly wake: () => void }>()

  // One turn of the event loop lets every promise chain that a wake-up started run to its next real wait.
  const settle = () => new Promise<void>(resolve => setImmediate(resolve))

  return {
    now: () => wall,
    monotonic: () => steady,
    sleep: (ms, signal) =>
      new Promise<void>((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason)
          return
        }
        const onAbort = () => {
          sleeping.delete(sleeper)
          reject(signal?.reason)
        }
        const sleeper = {
          at: steady + Math.max(ms, 0),
          wake: () => {
            sleeping.delete(sleeper)
            signal?.removeEventListener('abort', onAbort)
            resolve()
          },
        }
        signal?.addEventListener('abort', onAbort, { once: true })
        sleeping.add(sleeper)
      }),
    async advance(ms) {
      await settle()
      const end = steady + ms
      for (;;) {
        const due = [...sleeping].filter(s => s.at <= end).sort((a, b) => a.at - b.at)[0]
        if (due === undefined) break
        const step = Math.max(due.at - steady, 0)
        steady += step
        wall += step
        due.wake()
        await settle()
      }
      wall += end - steady
      steady = end
    },
    jump(ms) {
      wall += ms
    },
    sleepers: () => sleeping.size,
    async untilSleepers(count) {
      while (sleeping.size < count) await settle()
    },
  }
}
