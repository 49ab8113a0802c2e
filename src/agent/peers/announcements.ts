import type { SlotKey } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'

/** Wakes the waiters for news of a slot. The news itself is in the store. */
export interface Announcements {
  announce(slot: SlotKey): void
  /**
   * Resolves at the next announcement for this slot. A caller that reads the store and then calls this, without an
   * await in between, misses none.
   * @throws the signal's reason
   */
  next(slot: SlotKey, signal: AbortSignal): Promise<void>
}

export function createAnnouncements(): Announcements {
  const waiters = new Map<string, Set<() => void>>()
  return {
    announce(slot) {
      const name = slotName(slot)
      const woken = waiters.get(name) ?? []
      waiters.delete(name)
      for (const wake of woken) wake()
    },
    next(slot, signal) {
      const name = slotName(slot)
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          const set = waiters.get(name)
          set?.delete(wake)
          if (set?.size === 0) waiters.delete(name)
          reject(signal.reason)
        }
        const wake = () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        }
        if (signal.aborted) return reject(signal.reason)
        signal.addEventListener('abort', onAbort, { once: true })
        waiters.set(name, (waiters.get(name) ?? new Set()).add(wake))
      })
    },
  }
}
