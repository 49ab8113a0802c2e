import { vi } from 'vitest'

/** Repeats `check` until it stops throwing; the timeout suits a busy machine. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000, interval: 5 })
}
