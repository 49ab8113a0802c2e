import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { createCluster } from './model/cluster.ts'
import { modelPlatform } from './model/platform.ts'
import { runRound, type Scenario, specOf } from './model/round.ts'

const quiet: Scenario = {
  ...{ seed: 1, nodes: 4, replicas: 2, hotBackups: 1, coldBackups: 1, copies: 2 },
  ...{ containers: 'one', steps: [] },
}

it('in a cluster in which nothing fails every slot is served', async () => {
  const { violations, virtualMs } = await runRound(quiet)
  expect(violations).toEqual([])
  expect(virtualMs).toBeLessThan(60_000)
})

it('a primary that ends is followed by one with its memory', async () => {
  const endApp = { type: 'endApp', primary: 0, container: 'app' } as const
  const { violations, thaws } = await runRound({ ...quiet, steps: [{ afterMs: 5_000, command: endApp }] })
  expect(violations).toEqual([])
  expect(thaws).toBe(1)
})

it('a primary whose node is cut off has a successor long before Kubernetes gives its node up', async () => {
  const cut = { type: 'cutPrimarysNode', primary: 0, forMs: 8_000, apiOnly: false } as const
  const scenario = { ...quiet, replicas: 1, copies: 1, steps: [{ afterMs: 5_000, command: cut }] }
  const { violations, thaws } = await runRound({ ...scenario, nodeTimeoutMs: 3_000 })
  expect(violations).toEqual([])
  expect(thaws).toBe(1)
  expect(await runRound(scenario)).toMatchObject({ violations: [], thaws: 0 })
})

it('a paused primary whose sentinel has no voters yet is replaced when Kubernetes gives its node up', async () => {
  const steps = [
    { afterMs: 244, command: { type: 'deletePod', pod: 3, force: true } as const },
    { afterMs: 48, command: { type: 'pausePrimarysMachine', primary: 0, forMs: 34_000 } as const },
    // When its machine runs again, its agent cannot ask who has the slot.
    {
      afterMs: 8_000,
      command: { type: 'cutPrimarysNode', primary: 0, forMs: 26_000, apiOnly: false } as const,
    },
  ]
  const about = { ...quiet, replicas: 1, hotBackups: 2, coldBackups: 0, copies: 1, nodeTimeoutMs: 3_000 }
  const { violations, thaws } = await runRound({ ...about, seed: 416257851, steps })
  expect(violations).toEqual([])
  expect(thaws).toBe(2)
})

it('the same scenario comes to the same end', async () => {
  const deletePod = { type: 'deletePod', pod: 2, force: false } as const
  const scenario = { ...quiet, steps: [{ afterMs: 3_000, command: deletePod }] }
  const heard = async () => {
    const said: string[] = []
    const round = await runRound(scenario, (at, what) => said.push(`${at} ${what}`))
    return { ...round, said }
  }
  const first = await heard()
  expect(first.said.length).toBeGreaterThan(20)
  expect(await heard()).toEqual(first)
  // The result does not depend on whether a log is written, either.
  const { said: _, ...round } = first
  expect(await runRound(scenario)).toEqual(round)
})

it.each([1, 0])(
  'what a set of two gives up when it is scaled to %i comes back with its memory',
  async replicas => {
    const steps = [
      { afterMs: 5_000, command: { type: 'scale', replicas } as const },
      // The first time its pods have ended before the set grows again; the second time they have not.
      { afterMs: 20_000, command: { type: 'scale', replicas: 2 } as const },
      { afterMs: 15_000, command: { type: 'scale', replicas } as const },
      { afterMs: 1_000, command: { type: 'scale', replicas: 2 } as const },
    ]
    const { violations, thaws } = await runRound({ ...quiet, steps })
    expect(violations).toEqual([])
    expect(thaws).toBe(2 * (2 - replicas))
  },
)

it('a cluster that is over leaves nothing behind, for the next hundred thousand', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const liveAndDie = async () => {
    const cluster = createCluster(modelPlatform(), {
      seed: 1,
      nodes: 3,
      heartbeatPort: undefined,
      moves: false,
    })
    cluster.createSet(specOf(quiet))
    cluster.startOperator(0)
    await cluster.time.runUntil(20_000)
    for (const node of cluster.nodes) cluster.endAgent(node, 'kill')
    await cluster.time.runUntil(25_000)
    await cluster.end()
    return new WeakRef(cluster.server)
  }
  const left = await liveAndDie()
  // Unwinding takes some turns of the event loop.
  for (let turns = 0; turns < 20 && left.deref() !== undefined; turns += 1) {
    await new Promise(resolve => setImmediate(resolve))
    gc()
  }
  expect(left.deref()).toBeUndefined()
})
