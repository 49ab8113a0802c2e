import { afterEach, describe, expect, it } from 'vitest'
import { type Cluster, createCluster, type ModelNode } from '../cluster.ts'
import { modelPlatform } from '../platform.ts'
import { boundsOf } from './bounds.ts'
import { createHealth } from './health.ts'

const clusters: Cluster[] = []

afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.end()
})

/** A cluster in which everything works. `pass` looks each half second, like a round. */
async function start() {
  const cluster = createCluster(modelPlatform(), {
    seed: 1,
    nodes: 3,
    heartbeatPort: undefined,
    moves: false,
  })
  clusters.push(cluster)
  const health = createHealth(cluster, boundsOf(1))
  cluster.startOperator(0)
  const pass = async (ms: number) => {
    for (const end = cluster.time.now() + ms; cluster.time.now() < end; health.look())
      await cluster.time.runUntil(cluster.time.now() + 500)
  }
  await pass(20_000)
  const [node] = cluster.nodes
  if (node === undefined) throw new Error('there is no node')
  return { cluster, health, pass, node }
}

describe('the operators may take an agent for one that writes', () => {
  it.each<[string, (cluster: Cluster, node: ModelNode) => void]>([
    ['is killed', (cluster, node) => cluster.endAgent(node, 'kill')],
    ['loses its machine', (cluster, node) => cluster.powerOff(node)],
    ['cannot reach the API server', (_, { link }) => Object.assign(link, { cut: true })],
  ])('for 13 s after it %s', async (_, fail) => {
    const { cluster, health, pass, node } = await start()
    fail(cluster, node)
    expect(health.isSound(node)).toBe(false)
    await pass(12_500)
    expect(health.mayBeHeard(node)).toBe(true)
    await pass(500)
    expect(health.mayBeHeard(node)).toBe(false)
  })

  it('as long as it reaches the API server, though not the other nodes', async () => {
    const { health, pass, node } = await start()
    node.machine.partitioned = true
    await pass(30_000)
    expect([health.isSound(node), health.mayBeHeard(node)]).toEqual([false, true])
  })

  it('while their news is late, but only if it wrote when that began', async () => {
    const { cluster, health, pass, node } = await start()
    const [, other] = cluster.nodes
    const link = cluster.operators[0]?.link
    if (other === undefined || link === undefined) throw new Error('there is no other node, or no operator')
    cluster.endAgent(other, 'kill')
    await pass(20_000)
    cluster.endAgent(node, 'kill')
    link.cut = true
    await pass(30_000)
    expect([node, other].map(health.mayBeHeard)).toEqual([true, false])
    link.cut = false
    await pass(14_000)
    expect([node, other].map(health.mayBeHeard)).toEqual([false, false])
  })
})
