/**
 * Is loaded before each test file: a wait gives up only where something hangs. The default of vitest, one second, is
 * less than a busy machine takes to start a process.
 */
import { vi } from 'vitest'
import { waitLimitMs } from './wait-limit.ts'

const { waitFor, waitUntil } = vi

const patient = <T extends object>(options: number | T | undefined) =>
  typeof options === 'number' ? options : { timeout: waitLimitMs, ...options }

vi.waitFor = (callback, options) => waitFor(callback, patient(options))
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options))
