import { describe, expect, it } from 'vitest'
import { labels } from '../../src/api/labels.ts'
import type { Pod } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { kubectl } from './lib/cluster.ts'
import { createWorld, replicas, restartsOf, system, type TestSet, testSet, type World } from './lib/world.ts'

const file = (path: string) => new URL(`../../${path}`, import.meta.url).pathname
const urlOf = (pod: Pod, path: string): string => `http://${pod.status?.podIP}:8080${path}`

async function numberIn(pod: Pod): Promise<number> {
  const answer = await fetch(urlOf(pod, '/peek'), { signal: AbortSignal.timeout(5_000) })
  return ((await answer.json()) as { count: number }).count
}

async function sampleSet({ api, namespace }: World): Promise<TestSet> {
  await kubectl('apply', '-n', namespace, '-f', file('samples/http-state.yaml'))
  return testSet(api, namespace, 'http-state')
}

/** Returns a metric of the operator with these labels, the sum over its replicas. */
async function metric({ api }: World, name: string, labels: readonly string[] = []): Promise<number> {
  const counts = (await replicas({ api })).map(async ({ metadata }) => {
    const path = `/api/v1/namespaces/${system}/pods/${metadata.name}:8080/proxy/metrics`
    const lines = String((await api.request('GET', path)).body).split('\n')
    const line = lines.find(it => /^\w+/.exec(it)?.[0] === name && labels.every(label => it.includes(label)))
    return Number(line?.split(' ').at(-1) ?? 0)
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

/** Returns how often the operator has pulled the state of a primary of this world. */
const pulls = (world: World) =>
  metric(world, 'understudy_pulls_total', [`namespace="${world.namespace}"`, 'result="ok"'])

/** Waits until the state store has everything that was pulled. */
const stored = (world: World): Promise<void> =>
  eventually(async () => {
    const puts = ['operation="put"', 'result="ok"']
    expect(await metric(world, 'understudy_state_store_operations_total', puts)).toBeGreaterThan(0)
    expect(await metric(world, 'understudy_state_store_pending_keys')).toBe(0)
  })

/** Waits until a counter has risen by two: the next pull may have begun before. */
async function twice(count: () => Promise<number>): Promise<void> {
  const before = await count()
  await eventually(async () => expect(await count()).toBeGreaterThanOrEqual(before + 2))
}

/** Counts, and waits until the operator has pulled the count. @returns the count */
async function counted(world: World, primary: Pod | undefined, times: number): Promise<number> {
  if (!primary) throw new Error('no primary')
  for (let i = 0; i < times; i += 1) await (await fetch(urlOf(primary, '/'))).text()
  await twice(() => pulls(world))
  return numberIn(primary)
}

const successor = (set: TestSet, lost: Pod | undefined): Promise<Pod> =>
  eventually(async () => {
    const [pod] = (await set.pods('primary')).filter(({ metadata }) => metadata.uid !== lost?.metadata.uid)
    if (!pod || pod.status?.podIP === undefined) throw new Error('no successor yet')
    return pod
  })

describe('D3.http-kubelets: state over HTTP on real kubelets', () => {
  it('the value goes on in a hot backup, in a cold one, in a new pod, and in an app that was started again', async () => {
    await using world = await createWorld()
    const set = await sampleSet(world)
    let [primary] = (await set.settled(1, 1, 1)).primary
    for (const [backups, times] of [
      [{ hotBackups: 1, coldBackups: 1 }, 3],
      [{ hotBackups: 0, coldBackups: 1 }, 5],
      [{ hotBackups: 0, coldBackups: 0 }, 7],
    ] as const) {
      await set.scale({ replicas: 1, ...backups })
      ;[primary] = (await set.settled(1, backups.hotBackups, backups.coldBackups)).primary
      const value = await counted(world, primary, times)
      expect(value).toBeGreaterThanOrEqual(times)
      if (primary) await set.deletePod(primary, 0)
      const next = await successor(set, primary)
      expect(await numberIn(next)).toBe(value)
      primary = next
    }
    ;[primary] = (await set.settled(1, 0, 0)).primary
    const value = await counted(world, primary, 2)
    if (!primary) throw new Error('no primary')
    await fetch(urlOf(primary, '/crash'), { method: 'POST' }).catch(() => {})
    await eventually(async () => {
      const [pod] = await set.pods('primary')
      if (!pod || restartsOf(pod) === 0) throw new Error('not started again yet')
      expect(await numberIn(pod)).toBe(value)
    })
    const { failovers = [] } = (await set.get()).status ?? {}
    expect(failovers.map(({ reason }) => reason)).toEqual(['PodDeleted', 'PodDeleted', 'PodDeleted'])
    expect(
      failovers.every(({ generation, stateAge }) => generation !== undefined && stateAge !== undefined),
    ).toBe(true)
  }, 400_000)

  it('D9.redis-kubelets: with a Redis the value goes on although the operator was restarted and its primary lost meanwhile', async () => {
    await using world = await createWorld()
    const namespace = system
    const operator = ['-n', namespace, 'deployment/understudy-operator']
    const env = (value: string) => kubectl('set', 'env', ...operator, `UNDERSTUDY_STATE_STORE${value}`)
    const rolled = () => kubectl('rollout', 'status', ...operator, '--timeout=180s')
    await kubectl(
      'create',
      'secret',
      'generic',
      'understudy-state-store',
      '-n',
      namespace,
      '--from-literal=password=not-much-of-a-secret',
    )
    await kubectl('apply', '-f', file('deploy/redis/redis.yaml'))
    try {
      // Redis comes first: an operator that finds no Redis retries with growing delays, and this test does not wait for
      // that.
      await kubectl('rollout', 'status', '-n', namespace, 'deployment/understudy-redis', '--timeout=180s')
      // Its key `password` becomes UNDERSTUDY_STATE_STORE_PASSWORD.
      const secret = '--from=secret/understudy-state-store'
      await kubectl('set', 'env', ...operator, secret, '--prefix=UNDERSTUDY_STATE_STORE_')
      await env('=redis://understudy-redis:6379')
      await rolled()
      const set = await sampleSet(world)
      const [primary] = (await set.settled(1, 1, 1)).primary
      const value = await counted(world, primary, 4)
      await stored(world)
      // By force, so that the operator writes nothing at its end: only its earlier writes count.
      await kubectl(
        'delete',
        'pods',
        '-n',
        namespace,
        '-l',
        'app.kubernetes.io/component=operator',
        '--force',
        '--grace-period=0',
      )
      if (primary) await set.deletePod(primary, 0)
      const next = await successor(set, primary)
      expect(await numberIn(next)).toBe(value)
      expect(next.metadata.labels?.[labels.slot]).toBe('0')
    } finally {
      await env('-')
      await env('_PASSWORD-')
      await kubectl('delete', '-f', file('deploy/redis/redis.yaml'), '--ignore-not-found')
      await kubectl('delete', 'secret', 'understudy-state-store', '-n', namespace, '--ignore-not-found')
      await rolled()
    }
  }, 600_000)
})
