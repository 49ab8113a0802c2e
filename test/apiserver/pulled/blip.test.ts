import { expect, it, vi } from 'vitest'
import { pods } from '../../../src/kube/resources.ts'
import { ofKind, onStage } from '../lib/stage.ts'
import { createStatefulApps, statePort } from '../lib/stateful-app.ts'

it('a blip of leadership keeps what was pulled: who dies in it is succeeded with its state', async () => {
  const apps = createStatefulApps()
  await using stage = await onStage({ app: apps.start })
  const { process, proxy } = await stage.start('--identity', 'a')
  await process.leading()
  const http = { port: statePort, restoreSeconds: 60 }
  await stage.make({ replicas: 1, hotBackups: 1, checkpoint: { source: 'http', interval: '200ms', http } })
  const primary = await vi.waitFor(async () => {
    const all = await stage.live()
    expect(ofKind(all, 'hotbackup')).toHaveLength(1)
    const name = ofKind(all, 'primary')[0]?.metadata.name ?? ''
    expect(apps.asked.get(name)).toBeGreaterThan(0)
    return name
  })
  apps.state.set(primary, 'one')
  const asked = apps.asked.get(primary) ?? 0
  await vi.waitFor(() => expect(apps.asked.get(primary)).toBeGreaterThan(asked + 2))

  const blip = proxy.status(500, {
    match: ({ path }) => path.endsWith('/leases/understudy-operator'),
    count: Number.POSITIVE_INFINITY,
  })
  await vi.waitFor(() => expect(process.log.join()).toContain('leadership lost'))
  await stage.api.delete(pods, { namespace: stage.namespace, name: primary }, { gracePeriodSeconds: 0 })
  blip.end()
  await vi.waitFor(async () => {
    const [heir] = ofKind(await stage.live(), 'primary')
    expect(heir?.metadata.name).not.toBe(primary)
    expect(apps.given.get(heir?.metadata.name ?? '')).toEqual(['one'])
  })
}, 300_000)
