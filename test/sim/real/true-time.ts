/** Real time, with parties that can end, be paused and have clocks of their own. */
import type { Party, VirtualTime } from '../model/virtual-time.ts'

export function createTrueTime(): VirtualTime {
  const epoch = Date.now()
  const began = performance.now()
  const now = () => performance.now() - began
  const held = new Map<Party, (() => void)[]>()
  let steps = 0

  const perform = (party: Party, run: () => void) => {
    if (!party.alive) return
    steps += 1
    if (!party.paused) return run()
    held.set(party, [...(held.get(party) ?? []), run])
  }
  // The timers are unreferenced: only the round itself, in `runUntil`, keeps the process alive.
  const after = (party: Party, ms: number, run: () => void) =>
    setTimeout(() => perform(party, run), Math.max(ms, 0)).unref()

  return {
    epoch,
    now,
    get steps() {
      return steps
    },
    createParty: name => ({ name, alive: true, paused: false, wallOffsetMs: 0 }),
    clockOf: party => ({
      now: () => Math.round(epoch + now() + party.wallOffsetMs),
      monotonic: () => now() + 1_000_000,
      sleep: (ms, signal) =>
        new Promise<void>((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason)
          const onAbort = () => {
            clearTimeout(timer)
            reject(signal?.reason)
          }
          const timer = after(party, ms, () => {
            signal?.removeEventListener('abort', onAbort)
            resolve()
          })
          signal?.addEventListener('abort', onAbort, { once: true })
        }),
    }),
    after: (party, ms, run) => void after(party, ms, run),
    resume(party) {
      party.paused = false
      const waiting = held.get(party) ?? []
      held.delete(party)
      for (const run of waiting) after(party, 0, run)
    },
    runUntil: ms => new Promise(resolve => setTimeout(resolve, Math.max(ms - now(), 0))),
  }
}
