import type { Clock } from '../kube/clock.ts'
import type { StateStore } from './state-store.ts'

/** The default store, in this process' memory and lost with it. Entries that are not renewed expire. */
export function createMemoryStore(clock: Clock): StateStore {
  const entries = new Map<string, { readonly value: Uint8Array; readonly until: number }>()
  const live = (key: string) => {
    const entry = entries.get(key)
    if (entry === undefined || entry.until > clock.monotonic()) return entry
    entries.delete(key)
    return undefined
  }
  return {
    durable: false,
    get: async key => live(key)?.value,
    async put(key, value, ttlMs) {
      for (const each of entries.keys()) live(each)
      entries.set(key, { value, until: clock.monotonic() + ttlMs })
    },
    async touch(key, ttlMs) {
      const entry = live(key)
      if (entry === undefined) return false
      entries.set(key, { ...entry, until: clock.monotonic() + ttlMs })
      return true
    },
    async delete(keys) {
      for (const key of keys) entries.delete(key)
    },
    close: async () => {},
  }
}
