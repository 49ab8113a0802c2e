/** For the tests of an operator: an API server in memory, and time and chance that the test controls. */

export type { FakeClock } from '../clock.ts'
export { createFakeClock } from '../clock.ts'
export { seededRandom } from '../random.ts'
export type { ApiServer, HistoryEvent, Objects, Preconditions } from './api-server.ts'
export { createApiServer } from './api-server.ts'
export type { Faults, MemoryCall } from './memory-api.ts'
export { createMemoryApi } from './memory-api.ts'
