import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../kube/clock.ts'
import { systemRandom } from '../kube/random.ts'
import { runCanary } from './canary.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from './testing/node.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 300_000 })

describe.skipIf(cannotDump !== undefined)(`canary ${cannotDump ?? ''}`, () => {
  let node: TestNode
  beforeAll(async () => {
    node = await startTestNode()
  })
  afterAll(() => node?.dispose())

  test('a server of processes and threads is saved, and goes on elsewhere from where it was', async () => {
    const result = await runCanary({
      driver: node.driver,
      sentinel: node.sentinel,
      clock: systemClock,
      random: systemRandom,
      fs: hostFs,
      programs: node.programs.directory,
      directory: join(node.directory, 'canary'),
      signal: AbortSignal.timeout(50_000),
    })
    expect(result.frozenMs).toBeGreaterThan(0)
  })
})
