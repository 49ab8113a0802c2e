// Long because every case needs the same operator and apps with state.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BackupPodSet, type BackupPodSetSpec, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels, type PodKind } from '../../../src/api/labels.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { events, namespaces, type Pod, pods } from '../../../src/kube/resources.ts'
import { createRedisServer, type RedisServer } from '../../../src/state-store/testing/redis-server.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from '../lib/operator-process.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { createStatefulApps, statePort } from '../lib/stateful-app.ts'

let api: Api
let kubelet: FakeKubelet
let redis: RedisServer
let operator: OperatorProcess
const apps = createStatefulApps()
const namespace = `pulled-${randomBytes(4).toString('hex')}`

const lead = async () => {
  operator = startOperator(adminKubeconfig(), namespace, '--no-leader-elect', '--state-store', redis.url)
  await operator.leading()
}
const relead = async () => {
  operator.kill()
  await operator.exited()
  await lead()
}

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace } })
  kubelet = startFakeKubelet(api, namespace, { app: apps.start })
  redis = await createRedisServer()
  await lead()
})
afterAll(async () => {
  await operator?.[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await redis?.[Symbol.asyncDispose]()
  await api.close()
})

async function create(name: string, spec: Partial<BackupPodSetSpec>, http: object = {}) {
  const checkpoint = {
    source: 'http',
    interval: '200ms',
    http: { port: statePort, restoreSeconds: 60, ...http },
  }
  const template = {
    metadata: { labels: { app: name } },
    spec: { containers: [{ name: 'app', image: 'app' }] },
  }
  const body = {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    metadata: { name },
    spec: { replicas: 1, checkpoint, template, ...spec },
  }
  await api.create(backupPodSets, body, { namespace })
  return { namespace, name }
}
type Ref = Awaited<ReturnType<typeof create>>

const get = (ref: Ref) => api.get(backupPodSets, ref)
const patch = (ref: Ref, spec: object) =>
  api.patch<BackupPodSet>(backupPodSets, ref, { type: 'merge', body: { spec } })
const kill = (pod: Pod) => api.delete(pods, { namespace, name: pod.metadata.name }, { gracePeriodSeconds: 0 })

async function podsOf(ref: Ref, kind?: PodKind): Promise<Pod[]> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${ref.name}` })
  return items.filter(
    ({ metadata }) =>
      metadata.deletionTimestamp === undefined &&
      (kind === undefined || metadata.labels?.[labels.type] === kind),
  )
}

const settled = (ref: Ref, p: number, h: number, c: number) =>
  eventually(async () => {
    const { status } = await get(ref)
    const seen = [status?.readyReplicas, status?.readyHotbackups, status?.gatedColdbackups].join()
    if (seen !== [p, h, c].join()) throw new Error(`${seen}: ${JSON.stringify(status)}`)
    return podsOf(ref)
  })
const primaryOf = async (ref: Ref, slot = 0): Promise<Pod> => {
  const found = (await podsOf(ref, 'primary')).find(
    ({ metadata }) => metadata.labels?.[labels.slot] === `${slot}`,
  )
  if (!found) throw new Error('no primary')
  return found
}
/** Gives the primary of a slot a state, and waits until the operator has pulled it. */
async function pulled(ref: Ref, state: string, slot = 0): Promise<Pod> {
  const primary = await primaryOf(ref, slot)
  const { name } = primary.metadata
  apps.state.set(name, state)
  // The request in progress may have been answered before the change; the one after it was not.
  const asked = apps.asked.get(name) ?? 0
  await eventually(() => expect(apps.asked.get(name) ?? 0).toBeGreaterThan(asked + 2))
  return primary
}
const succeeded = (ref: Ref, before: Pod, slot = 0) =>
  eventually(async () => {
    const now = await primaryOf(ref, slot)
    if (now.metadata.uid === before.metadata.uid) throw new Error('no successor yet')
    return now
  })
const noted = (ref: Ref, reason: string) =>
  eventually(async () => {
    const fieldSelector = `regarding.name=${ref.name},reason=${reason}`
    const [event] = (await api.list(events, { namespace, fieldSelector })).items
    if (!event) throw new Error(`no event ${reason}`)
    return event
  })
const stateOf = (pod: Pod) => apps.state.get(pod.metadata.name)

describe('D3.http-successor: the successor goes on with the state', () => {
  it('a hot backup, which has it before its label says primary; and the status tells', async () => {
    const ref = await create('hot', { hotBackups: 1 })
    await settled(ref, 1, 1, 0)
    const before = await pulled(ref, 'one')
    await eventually(async () => {
      const { status } = await get(ref)
      expect(status?.slots?.[0]).toMatchObject({ protection: 'Warm', usableOn: [expect.any(String)] })
      expect(status?.slots?.[0]?.generation).toBeGreaterThan(0)
      expect(status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'CheckpointReady', status: 'True' }),
      )
    })
    await kill(before)
    const after = await succeeded(ref, before)
    expect(apps.given.get(after.metadata.name)).toEqual(['one'])
    const { status } = await eventually(async () => {
      const set = await get(ref)
      if (set.status?.lastFailover?.to !== after.metadata.name) throw new Error('not told yet')
      return set
    })
    expect(status?.lastFailover).toMatchObject({ slot: 0, from: before.metadata.name, reason: 'PodDeleted' })
    expect(status?.lastFailover?.generation).toBeGreaterThan(0)
    expect(status?.lastFailover?.stateAge).toBeGreaterThanOrEqual(0)
    expect(status?.failovers).toHaveLength(1)
    expect(status?.slots?.[0]?.lastFailover).toMatchObject({
      from: before.metadata.name,
      reason: 'PodDeleted',
    })
    expect((await noted(ref, 'FailedOver')).note).toMatch(
      /its state \(pulled, generation \d+\) was [\d.]+ s old/,
    )
  })

  it('a cold backup, and a new pod', async () => {
    const ref = await create('cold', { coldBackups: 1 })
    await settled(ref, 1, 0, 1)
    const [sleeper] = await podsOf(ref, 'coldbackup')
    const first = await pulled(ref, 'a')
    await kill(first)
    const second = await succeeded(ref, first)
    expect(second.metadata.uid).toBe(sleeper?.metadata.uid)
    expect(stateOf(second)).toBe('a')
    await patch(ref, { coldBackups: 0 })
    await settled(ref, 1, 0, 0)
    await pulled(ref, 'b')
    await kill(second)
    const third = await succeeded(ref, second)
    expect(stateOf(third)).toBe('b')
    expect(apps.given.get(third.metadata.name)).toEqual(['b'])
    await settled(ref, 1, 0, 0)
  })

  it('each slot its own; and a number that is used again inherits nothing', async () => {
    const ref = await create('slots', { replicas: 3, hotBackups: 1 })
    await settled(ref, 3, 1, 0)
    for (const slot of [0, 1, 2]) await pulled(ref, `state-${slot}`, slot)
    const lost = await primaryOf(ref, 1)
    await kill(lost)
    expect(stateOf(await succeeded(ref, lost, 1))).toBe('state-1')
    await settled(ref, 3, 1, 0)
    await patch(ref, { replicas: 1 })
    await settled(ref, 1, 1, 0)
    const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=slots` })
    const before = new Set(items.map(({ metadata }) => metadata.name))
    await patch(ref, { replicas: 3, hotBackups: 0 })
    await settled(ref, 3, 0, 0)
    for (const pod of await podsOf(ref, 'primary'))
      if (!before.has(pod.metadata.name)) expect(apps.given.get(pod.metadata.name)).toBeUndefined()
  })

  it('who does not take it is passed over, and a slot whose state nobody takes begins anew with an event', async () => {
    const ref = await create('deaf', { hotBackups: 1, coldBackups: 1 })
    await settled(ref, 1, 1, 1)
    const [hot] = await podsOf(ref, 'hotbackup')
    const [cold] = await podsOf(ref, 'coldbackup')
    apps.deaf.add(hot?.metadata.name ?? '')
    const first = await pulled(ref, 'x')
    await kill(first)
    const second = await succeeded(ref, first)
    expect(second.metadata.uid).toBe(cold?.metadata.uid)
    expect(stateOf(second)).toBe('x')
    expect((await noted(ref, 'PromotionFailed')).note).toMatch(
      /did not accept the state of slot 0: POST .* answered 500/,
    )
  })

  it('an app that says nothing is named, and what it said before is not lost', async () => {
    const ref = await create('mute', { hotBackups: 1 })
    await settled(ref, 1, 1, 0)
    const before = await pulled(ref, 'said')
    apps.mute.add(before.metadata.name)
    await eventually(async () => {
      const { status } = await get(ref)
      const condition = status?.conditions?.find(({ type }) => type === 'CheckpointReady')
      expect(condition).toMatchObject({ status: 'False', reason: 'PullFailed' })
      expect(condition?.message).toMatch(/GET http:.* answered 500/)
    })
    await kill(before)
    expect(stateOf(await succeeded(ref, before))).toBe('said')
  })

  it('a state that is too large is not taken, and the condition says what to do', async () => {
    const ref = await create('large', {}, { maxSize: '10' })
    await settled(ref, 1, 0, 0)
    const primary = await primaryOf(ref)
    apps.state.set(primary.metadata.name, 'x'.repeat(11))
    await eventually(async () => {
      const condition = (await get(ref)).status?.conditions?.find(({ type }) => type === 'CheckpointReady')
      expect(condition).toMatchObject({ status: 'False', reason: 'StateTooLarge' })
      expect(condition?.message).toMatch(/raise checkpoint\.http\.maxSize/)
    })
  })

  it('an app that is started again in its pod gets its state back, and is not asked before', async () => {
    const ref = await create('restarted', {})
    await settled(ref, 1, 0, 0)
    const primary = await pulled(ref, 'kept')
    const { name } = primary.metadata
    apps.mute.add(name)
    apps.state.set(name, '')
    kubelet.restarted.set(name, new Date())
    kubelet.look()
    await eventually(() => expect(apps.given.get(name)).toEqual(['kept']))
    apps.mute.delete(name)
    await noted(ref, 'RestoredInPlace')
    expect((await primaryOf(ref)).metadata.uid).toBe(primary.metadata.uid)
    await settled(ref, 1, 0, 0)
  })

  it('F39: a hot backup runs and is in step: it has what the primary said, before anything is lost', async () => {
    const push = { everyInterval: true }
    const ref = await create('step', { replicas: 2, hotBackups: 2 }, { push })
    await settled(ref, 2, 2, 0)
    const stateOfBackups = async () =>
      (await podsOf(ref, 'hotbackup')).map(pod => apps.state.get(pod.metadata.name)).sort()
    for (const slot of [0, 1]) await pulled(ref, `one-${slot}`, slot)
    await eventually(async () => expect(await stateOfBackups()).toEqual(['one-0', 'one-1']))
    for (const slot of [0, 1]) await pulled(ref, `two-${slot}`, slot)
    await eventually(async () => expect(await stateOfBackups()).toEqual(['two-0', 'two-1']))
    // Whichever backup succeeds, it has the state of its own slot, and from then on it receives no other slot's state.
    const before = await primaryOf(ref, 1)
    await kill(before)
    const after = await succeeded(ref, before, 1)
    expect(stateOf(after)).toBe('two-1')
    const given = apps.given.get(after.metadata.name)?.length
    await pulled(ref, 'three-0', 0)
    expect(apps.given.get(after.metadata.name)).toHaveLength(given ?? -1)
    const { metadata } = await patch(ref, { checkpoint: { http: { push: { everyInterval: false } } } })
    await eventually(async () => {
      const { status } = await api.get<BackupPodSet>(backupPodSets, ref)
      expect(status?.observedGeneration).toBe(metadata.generation)
    })
    await settled(ref, 2, 2, 0)
    await pulled(ref, 'four-0', 0)
    expect(await stateOfBackups()).not.toContain('four-0')
  })

  it('D3.http-rolls: a rolling template change takes the state along', async () => {
    const ref = await create('roll', { hotBackups: 1, updateStrategy: { type: 'RollingUpdate' } })
    await settled(ref, 1, 1, 0)
    const before = await pulled(ref, 'rolled')
    await patch(ref, { template: { spec: { containers: [{ name: 'app', image: 'app:2' }] } } })
    const after = await succeeded(ref, before)
    expect(after.spec?.containers[0]?.image).toBe('app:2')
    expect(stateOf(after)).toBe('rolled')
  })
})

describe('D9.redis-operator: the state store outlives the operator, and nothing depends on it', () => {
  it('a primary that is lost while nobody leads is succeeded with its state by the next operator', async () => {
    const ref = await create('store', { hotBackups: 1 })
    await settled(ref, 1, 1, 0)
    const before = await pulled(ref, 'stored')
    await eventually(async () => {
      const keys = await redis.command(`KEYS understudy:${(await get(ref)).metadata.uid}:state:0:*`)
      expect(keys.match(/state:0:(meta|bytes)/g)?.sort()).toEqual(['state:0:bytes', 'state:0:meta'])
    })
    operator.kill()
    await operator.exited()
    await kill(before)
    await lead()
    const after = await succeeded(ref, before)
    expect(stateOf(after)).toBe('stored')
    await eventually(async () => expect((await get(ref)).status?.failovers).toHaveLength(1))
  })

  it('history is there again after a restart, also where the status has lost it', async () => {
    const ref = { namespace, name: 'store' }
    const { status } = await get(ref)
    expect(status?.failovers).toHaveLength(1)
    await eventually(async () => {
      const key = `understudy:${(await get(ref)).metadata.uid}:ledger`
      expect(await redis.command(`EXISTS ${key}`)).toContain(':1')
    })
    operator.kill()
    await operator.exited()
    const { failovers: _, lastFailover: __, ...bare } = status ?? {}
    const current = await get(ref)
    await api.replace(backupPodSets, ref, { ...current, status: bare } as BackupPodSet, {
      subresource: 'status',
    })
    await lead()
    await eventually(async () => expect((await get(ref)).status?.failovers).toEqual(status?.failovers))
  })

  it('killed, stopped or emptied: failovers come to the same end, and the new primary has the state', async () => {
    const ref = await create('storm', { hotBackups: 1 })
    await settled(ref, 1, 1, 0)
    const faults: [string, () => Promise<unknown> | unknown, () => Promise<unknown> | unknown][] = [
      ['killed', () => redis.kill(), () => redis.start()],
      ['stopped', () => redis.stop(), () => redis.resume()],
      ['emptied', () => redis.command('FLUSHALL'), () => {}],
    ]
    for (const [name, harm, heal] of faults) {
      const before = await pulled(ref, name)
      await harm()
      await kill(before)
      const after = await succeeded(ref, before)
      expect(stateOf(after), name).toBe(name)
      await settled(ref, 1, 1, 0)
      await heal()
    }
    expect(operator.log.some(line => line.includes('the state store does not answer'))).toBe(true)
  })

  it('an operator that starts without it leads, and fails over what it has pulled itself', async () => {
    await redis.kill()
    await relead()
    const ref = { namespace, name: 'storm' }
    const before = await pulled(ref, 'alone')
    await kill(before)
    expect(stateOf(await succeeded(ref, before))).toBe('alone')
    await redis.start()
  })

  it('what a deleted set had is deleted there', async () => {
    const ref = await create('gone', {})
    await settled(ref, 1, 0, 0)
    await pulled(ref, 'x')
    const { uid } = (await get(ref)).metadata
    const keys = () => redis.command(`KEYS understudy:${uid}:*`)
    await eventually(async () => expect(await keys()).toContain('state:0:meta'))
    await api.delete(backupPodSets, ref)
    await eventually(async () => expect(await keys()).not.toContain('state'))
  })
})
