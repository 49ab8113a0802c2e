/** Sets whose states the operator pulls over HTTP. */
import type { ParsedPull } from '../../api/memory.ts'
import type { SavedState } from '../http-state/states.ts'

export const makePull = (over: Partial<ParsedPull> = {}): ParsedPull => ({
  intervalMs: 1_000,
  port: 8080,
  path: '/state',
  headers: [],
  maxBytes: 2 ** 20,
  timeoutMs: 1_000,
  restoreMs: 60_000,
  push: { path: '/state', method: 'POST', headers: [], everyInterval: false },
  container: 'app',
  ...over,
})

export const makeState = (over: Partial<SavedState> = {}): SavedState => ({
  slot: 0,
  incarnation: '00000000',
  generation: 1,
  holder: { name: 'p0', uid: 'uid-p0', epoch: 1, restarts: 0 },
  bytes: Buffer.alloc(0),
  digest: '',
  contentType: 'a/b',
  takenAt: 0,
  takenAtWall: 0,
  seconds: 0.1,
  hollow: false,
  ...over,
})
