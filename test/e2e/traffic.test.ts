import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { needsNodes } from './lib/cluster.ts'
import { discovery } from './lib/endpoints.ts'
import { type Answer, startTraffic } from './lib/traffic.ts'
import { createWorld } from './lib/world.ts'

const why = needsNodes()

/** Returns the requests to which a pod has replied. */
const answered = (all: readonly Answer[]) =>
  all.flatMap(({ host, count }) => (host === undefined ? [] : [{ host, count }]))

describe.skipIf(why)(`traffic${why ? ` (${why})` : ''}`, () => {
  it('F10 F11 F16: a Service reaches primaries only, through a failover and a change of the numbers', async () => {
    await using world = await createWorld()
    const set = await world.createSet('web', { replicas: 2, hotBackups: 2, coldBackups: 1 })
    const first = await set.settled(2, 2, 1)
    const service = await world.createService('web', { app: 'counter', type: 'primary' })
    await using traffic = await startTraffic(`http://${service.spec?.clusterIP}/`)
    // In parallel, a request every 2 ms from another node; none of these may reach a backup, either.
    await using load = await startTraffic(`http://${service.spec?.clusterIP}/`, 2, 'n2')
    const names = (all: readonly { metadata: { name: string } }[]) => all.map(pod => pod.metadata.name)

    // Both primaries answer, and each counts by itself.
    await eventually(() =>
      expect(new Set(traffic.answers.flatMap(one => one.host ?? []))).toEqual(new Set(names(first.primary))),
    )

    // They share the load: of hundreds of requests each gets at least a quarter.
    const from = traffic.answers.length
    await eventually(() => expect(traffic.answers.length - from).toBeGreaterThan(300))
    const shares = names(first.primary).map(
      name => traffic.answers.slice(from).filter(one => one.host === name).length,
    )
    expect(Math.min(...shares)).toBeGreaterThan(75)

    // One is deleted. Only its successor joins; the promoted pod keeps its uid, address and count of restarts.
    const [lost] = first.primary
    if (!lost) throw new Error('no primary')
    await set.deletePod(lost)
    const second = await eventually(async () => {
      const now = await set.settled(2, 2, 1)
      if (names(now.primary).includes(lost.metadata.name)) throw new Error('not deleted yet')
      return now
    })
    const heir = second.primary.find(pod => names(first.hotbackup).includes(pod.metadata.name))
    const before = first.hotbackup.find(pod => pod.metadata.uid === heir?.metadata.uid)
    expect(heir?.status?.podIP).toBe(before?.status?.podIP)
    expect(heir?.status?.containerStatuses?.[0]?.containerID).toBe(
      before?.status?.containerStatuses?.[0]?.containerID,
    )
    for (const { answers } of [traffic, load])
      await eventually(() => expect(answers.slice(-100).map(one => one.host)).toContain(heir?.metadata.name))
    expect(await discovery(world, 'web')).toEqual(names(second.primary))
    await eventually(() => expect(traffic.answers.length).toBeGreaterThan(300))

    const allowed = new Set([...names(first.primary), ...names(second.primary)])
    const steady = answered(await traffic.stop())
    const loaded = answered(await load.stop())
    // All three reply to the load, and more than twice as often as to the 50 requests a second of the first client.
    expect(new Set(loaded.map(one => one.host))).toEqual(allowed)
    expect(loaded.length).toBeGreaterThan(2 * steady.length)
    const answers = [...steady, ...loaded]
    // No request ever reached a hot or a cold backup.
    expect(answers.filter(one => !allowed.has(one.host))).toEqual([])
    // Not even before it was promoted: its first answer counts 1.
    const heirs = answers.filter(one => one.host === heir?.metadata.name).map(one => one.count ?? 0)
    expect(Math.min(...heirs)).toBe(1)
  })
})
