/** For the tests of an operator: time and chance that the test controls. */

export type { FakeClock } from '../clock.ts'
export { createFakeClock } from '../clock.ts'
export { seededRandom } from '../random.ts'
