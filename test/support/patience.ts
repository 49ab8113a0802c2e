/**
 * Is loaded before each test file: a wait gives up only where something hangs. The default of vitest, one second, is
 * less than a busy machine takes to start a process.
 */
import { vi } from 'vitest'

const timeout = 150_000
const { waitFor, waitUntil } = vi

vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout, ...options })
vi.waitUntil = (callback, options) =>
  waitUntil(callback, typeof options === 'number' ? options : { timeout, ...options })
