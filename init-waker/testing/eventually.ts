import { vi } from 'vitest'

/** Repeats `check` until it throws no more; long enough for a machine that is busy with other things. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000, interval: 5 })
}
