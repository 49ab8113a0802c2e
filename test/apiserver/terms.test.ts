/** Effects of one leader's actions that the next leader must know of. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { leases, pods } from '../../src/kube/resources.ts'
import { type Match, on, watching } from './fault-proxy.ts'
import { ofKind, onStage, type ProxiedOperator, type Stage } from './lib/stage.ts'

const creations = on('POST', /\/pods$/)

const ready = async (stage: Stage, kind: string, count: number) =>
  vi.waitFor(async () => {
    const all = ofKind(await stage.live(), kind).filter(pod =>
      pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
    expect(all).toHaveLength(count)
    return all
  })

/** The running watches of pods show nothing more; watches that begin later do. */
async function blind({ proxy }: ProxiedOperator) {
  const running = await vi.waitFor(() => {
    const found = proxy.requests.filter(watching('pods'))
    expect(found.length).toBeGreaterThan(0)
    return new Set(found)
  })
  return proxy.delayWatch(request => running.has(request))
}

const holder = async ({ api, namespace }: Stage) =>
  (await api.get(leases, { namespace, name: 'understudy-operator' })).spec?.holderIdentity

/** A leads; B is a standby and has seen the set's pods; then B's cache of them becomes stale. */
async function twoOperators(stage: Stage, prepare: () => Promise<unknown>) {
  const a = await stage.start('--identity', 'a')
  await a.process.leading()
  const b = await stage.start('--identity', 'b')
  await vi.waitFor(() => expect(b.process.log.some(line => line.includes('"resource":"pods"'))).toBe(true))
  await prepare()
  // Everything that A has created so far reaches B within milliseconds.
  await new Promise(resolve => setTimeout(resolve, 500))
  await blind(b)
  return { a, b }
}

describe('a standby whose watch of pods has fallen silent', () => {
  it('deletes nothing that the leader before it has left', async () => {
    await using stage = await onStage()
    const { a, b } = await twoOperators(stage, async () => {
      await stage.make({ replicas: 10, hotBackups: 0, coldBackups: 0 })
      await ready(stage, 'primary', 10)
    })
    await stage.change({ replicas: 5 })
    const left = await ready(stage, 'primary', 5)
    a.process.terminate()
    await b.process.leading()
    await new Promise(resolve => setTimeout(resolve, 3_000))
    const after = await ready(stage, 'primary', 5)
    expect(after.map(pod => pod.metadata.uid).sort()).toEqual(left.map(pod => pod.metadata.uid).sort())
  })

  it('makes nothing twice', async () => {
    await using stage = await onStage()
    const { a, b } = await twoOperators(stage, async () => {})
    await stage.make({ replicas: 4, hotBackups: 2, coldBackups: 0 })
    await ready(stage, 'primary', 4)
    const made = await ready(stage, 'hotbackup', 2)
    a.process.kill()
    await b.process.leading()
    await new Promise(resolve => setTimeout(resolve, 3_000))
    expect(b.proxy.requests.filter(creations)).toHaveLength(0)
    const after = await ready(stage, 'hotbackup', 2)
    expect(after.map(pod => pod.metadata.uid).sort()).toEqual(made.map(pod => pod.metadata.uid).sort())
  })

  it('gives the term back where no watch brings anything', async () => {
    await using stage = await onStage()
    const { a, b } = await twoOperators(stage, async () => {})
    const every: Match = watching('pods')
    const fault = b.proxy.delayWatch(every)
    a.process.terminate()
    await vi.waitFor(async () => expect(await holder(stage)).toBe('b'))
    await vi.waitFor(() => expect(b.process.log.join()).toContain('releasing leadership early'))
    fault.end()
    await b.process.leading()
  })
})

it('a primary that dies during a long scale-up is replaced long before its end', async () => {
  await using stage = await onStage()
  const { process, proxy } = await stage.start('--no-leader-elect')
  await process.leading()
  await stage.make({ replicas: 2, hotBackups: 1, coldBackups: 0 })
  const [lost] = await ready(stage, 'primary', 2)
  const [hot] = await ready(stage, 'hotbackup', 1)
  const slow = proxy.between(
    () => new Promise(resolve => setTimeout(resolve, 500)),
    creations,
    Number.POSITIVE_INFINITY,
  )
  await stage.change({ replicas: 1002 })
  await vi.waitFor(() => expect(slow.hits).toBeGreaterThan(8))
  await stage.api.delete(pods, { namespace: stage.namespace, name: lost?.metadata.name ?? '' })
  await vi.waitFor(async () => {
    const heir = await stage.api.get(pods, { namespace: stage.namespace, name: hot?.metadata.name ?? '' })
    expect(heir.metadata.labels?.['type']).toBe('primary')
  })
  // The pass that creates 1,000 pods is not over.
  expect(slow.hits).toBeLessThan(900)
})

it('a leader that receives SIGTERM during a long pass ends that pass and exits', async () => {
  await using stage = await onStage()
  const { process, proxy } = await stage.start('--identity', 'a')
  await process.leading()
  const slow = proxy.between(
    () => new Promise(resolve => setTimeout(resolve, 30_000).unref()),
    creations,
    Number.POSITIVE_INFINITY,
  )
  await stage.make({ replicas: 200, hotBackups: 0, coldBackups: 0 })
  await vi.waitFor(() => expect(slow.hits).toBeGreaterThan(0))
  const told = Date.now()
  process.terminate()
  // Its drain once took ten seconds. A busy machine stretches half a second, but not that far.
  expect(await process.exited()).toBe(0)
  expect(Date.now() - told).toBeLessThan(8_000)
  expect(slow.hits).toBeLessThanOrEqual(8)
})

it('what always fails stops no timer: a primary that hangs is replaced in its time', async () => {
  await using stage = await onStage()
  const { process, proxy } = await stage.start('--no-leader-elect')
  await process.leading()
  const unreadySeconds = 20
  await stage.make({ replicas: 1, hotBackups: 1, coldBackups: 0, failover: { unreadySeconds } })
  const [primary] = await ready(stage, 'primary', 1)
  const [hot] = await ready(stage, 'hotbackup', 1)
  const refused = proxy.status(403, {
    match: creations,
    count: Number.POSITIVE_INFINITY,
    reason: 'Forbidden',
  })
  for (let coldBackups = 1; coldBackups <= 25; coldBackups += 1) {
    const before = refused.hits
    await stage.change({ coldBackups })
    await vi.waitFor(() => expect(refused.hits).toBeGreaterThan(before))
  }
  stage.kubelet.unready.add(primary?.metadata.name ?? '')
  stage.kubelet.look()
  await vi.waitFor(
    async () => {
      const heir = await stage.api.get(pods, { namespace: stage.namespace, name: hot?.metadata.name ?? '' })
      expect(heir.metadata.labels?.['type']).toBe('primary')
    },
    { timeout: (unreadySeconds + 10) * 1000, interval: 100 },
  )
})

describe('the start', () => {
  it('ends with an exit code where a port is taken, and leaves nothing listening', async () => {
    await using stage = await onStage()
    const taken = createServer().listen(0)
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const { process } = await stage.start('--no-leader-elect', '--metrics-port', String(port))
    try {
      expect(await process.exited()).toBe(1)
      expect(process.log.join()).toContain('EADDRINUSE')
    } finally {
      taken.close()
    }
  })

  it('waits for an API server that is away', async () => {
    await using stage = await onStage()
    const { process, proxy } = await stage.start('--no-leader-elect')
    const away = proxy.status(503, { count: Number.POSITIVE_INFINITY, retryAfterSeconds: 60 })
    await vi.waitFor(() => expect(process.log.join()).toContain('does not answer yet'))
    away.end()
    await process.leading()
  })
})
