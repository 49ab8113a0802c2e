import { vi } from 'vitest'

/**
 * Between two looks, ms. Many looks are requests to an API server, and with the default of vitest they would be a third of all
 * that it serves.
 */
const interval = 200

/**
 * Repeats a check until it no longer throws, and returns its result. The limit is for checks that never pass: how fast
 * one passes says nothing on a busy machine.
 */
export const eventually = <T>(check: () => T | Promise<T>, timeoutMs?: number): Promise<T> =>
  vi.waitFor(check, { interval, ...(timeoutMs !== undefined && { timeout: timeoutMs }) })
