import { vi } from 'vitest'

/**
 * Repeats a check until it no longer throws, and returns its result. The limit is for checks that never pass: how fast
 * one passes says nothing on a busy machine.
 */
export const eventually = <T>(check: () => T | Promise<T>, timeoutMs?: number): Promise<T> =>
  vi.waitFor(check, timeoutMs)
