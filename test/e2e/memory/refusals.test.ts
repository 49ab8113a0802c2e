import { describe, expect, it } from 'vitest'
import { nodeReports } from '../../../src/api/node-report.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { createWorld, restartsOf } from '../lib/world.ts'

describe.skipIf(needsNodes())('what cannot be saved', () => {
  it('D6.refused: is found in the running app and not dumped, and status says what helps', async () => {
    await using world = await createWorld()
    const { template } = specimen('go')
    const [app] = template.spec?.containers ?? []
    if (app === undefined) throw new Error('the specimen has no container')
    // Without its environment its listener is an MPTCP socket.
    const { env: _, ...bare } = app
    const set = await world.createSet('mptcp', {
      replicas: 1,
      hotBackups: 1,
      checkpoint: { interval: '1s' },
      template: { ...template, spec: { ...template.spec, containers: [bare] } },
    })
    const message = await eventually(async () => {
      const condition = (await set.get()).status?.conditions?.find(({ type }) => type === 'CheckpointReady')
      if (condition?.reason !== 'Unsupported') throw new Error(`CheckpointReady is ${condition?.reason}`)
      return condition.message
    }, 90_000)
    expect(message).toMatch(/container app has an MPTCP socket \(counter: .*MPTCP.*GODEBUG=multipathtcp=0/)
    const { items } = await world.api.list(nodeReports, {})
    const slots = items
      .flatMap(({ status }) => status?.slots ?? [])
      .filter(({ namespace }) => namespace === world.namespace)
    expect(slots.map(({ generation }) => generation)).toEqual(slots.map(() => 0))
    const pods = await set.pods()
    expect(pods.map(restartsOf)).toEqual(pods.map(() => 0))
  })
})
