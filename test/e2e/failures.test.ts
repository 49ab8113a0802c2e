import { kill } from 'node:process'
import { describe, expect, it } from 'vitest'
import { pidsOf } from '../../playground/pids.ts'
import { isAtGate } from '../../src/api/gate.ts'
import { labels } from '../../src/api/labels.ts'
import { isReady } from '../../src/kube/ready.ts'
import type { Pod } from '../../src/kube/resources.ts'
import { events } from '../../src/kube/resources.ts'
import { deriveToken } from '../../src/slot/gate/token.ts'
import { wake } from '../../src/slot/gate/wake.ts'
import { eventually } from '../support/eventually.ts'
import { needsNodes } from './lib/cluster.ts'
import { counterWith, createWorld, restartsOf, type TestSet, type World } from './lib/world.ts'

const uids = (all: readonly Pod[]) => all.map(pod => pod.metadata.uid)
const sole = <T>(all: readonly T[]): T => {
  const [one] = all
  if (one === undefined || all.length !== 1) throw new Error(`${all.length} instead of one`)
  return one
}

/** Waits until the set is complete again without these pods. */
const repaired = (set: TestSet, lost: readonly Pod[], p: number, h: number, c: number) =>
  eventually(async () => {
    const now = await set.settled(p, h, c)
    const left = [...now.primary, ...now.hotbackup, ...now.coldbackup].filter(pod =>
      uids(lost).includes(pod.metadata.uid),
    )
    if (left.length > 0) throw new Error('not deleted yet')
    return now
  })

const noted = ({ api, namespace }: World, reason: string) =>
  eventually(async () => {
    const { items } = await api.list(events, { namespace, fieldSelector: `reason=${reason}` })
    if (items.length === 0) throw new Error(`no event ${reason}`)
    return items
  })

describe('pods that are lost', () => {
  it('F16 F19 F20 F22 F33 F36: a primary: hot follows in place, cold becomes hot, a new cold is made', async () => {
    await using world = await createWorld()
    const set = await world.createSet('one', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const before = await set.settled(1, 1, 1)
    await set.deletePod(sole(before.primary))
    const after = await repaired(set, before.primary, 1, 1, 1)
    expect(uids(after.primary)).toEqual(uids(before.hotbackup))
    expect(uids(after.hotbackup)).toEqual(uids(before.coldbackup))
    expect(restartsOf(sole(after.primary)) + restartsOf(sole(after.hotbackup))).toBe(0)
    expect(sole(after.primary).metadata.labels?.[labels.slot]).toBe('0')
    const { lastFailover, lastTransition } = (await set.get()).status ?? {}
    expect(lastFailover).toMatchObject({
      slot: 0,
      reason: 'PodDeleted',
      to: sole(after.primary).metadata.name,
    })
    expect(lastFailover?.seconds).toBeGreaterThan(0)
    expect(lastFailover?.seconds).toBeLessThan(60)
    expect(lastTransition).toMatchObject({ from: 'coldbackup', to: 'hotbackup' })
    await noted(world, 'FailedOver')
  })

  it('F17: without a hot backup the cold one is woken as primary, in place', async () => {
    await using world = await createWorld()
    const set = await world.createSet('cold', { replicas: 1, hotBackups: 0, coldBackups: 1 })
    const before = await set.settled(1, 0, 1)
    await set.deletePod(sole(before.primary))
    const after = await repaired(set, before.primary, 1, 0, 1)
    expect(uids(after.primary)).toEqual(uids(before.coldbackup))
    expect(sole(after.primary).status?.podIP).toBe(sole(before.coldbackup).status?.podIP)
    expect(restartsOf(sole(after.primary))).toBe(0)
  })

  it('F18: a new primary is made only when no backup is left', async () => {
    await using world = await createWorld()
    // Two losses and one backup: the backup succeeds one of them, and the other is replaced by a new pod.
    const short = await world.createSet('short', { replicas: 2, hotBackups: 1, coldBackups: 0 })
    const first = await short.settled(2, 1, 0)
    await Promise.all(first.primary.map(pod => short.deletePod(pod)))
    const second = await repaired(short, first.primary, 2, 1, 0)
    expect(uids(second.primary)).toContain(sole(first.hotbackup).metadata.uid)
    const set = await world.createSet('none', { replicas: 1, hotBackups: 0, coldBackups: 0 })
    const before = await set.settled(1, 0, 0)
    await set.deletePod(sole(before.primary))
    const after = await repaired(set, before.primary, 1, 0, 0)
    expect(sole(after.primary).metadata.labels?.[labels.slot]).toBe('0')
    expect(sole(after.primary).metadata.annotations?.['backup.example.com/epoch']).toBe('2')
  })

  it('F37: a hot backup, then a cold one', async () => {
    await using world = await createWorld()
    const set = await world.createSet('backups', { replicas: 1, hotBackups: 1, coldBackups: 1 })
    const first = await set.settled(1, 1, 1)
    await set.deletePod(sole(first.hotbackup))
    const second = await repaired(set, first.hotbackup, 1, 1, 1)
    expect(uids(second.hotbackup)).toEqual(uids(first.coldbackup))
    await set.deletePod(sole(second.coldbackup))
    const third = await repaired(set, second.coldbackup, 1, 1, 1)
    expect([uids(third.primary), uids(third.hotbackup)]).toEqual([
      uids(first.primary),
      uids(second.hotbackup),
    ])
  })

  it('F38: a primary and a hot backup at once, then all primaries at once', async () => {
    await using world = await createWorld()
    const set = await world.createSet('many', { replicas: 2, hotBackups: 1, coldBackups: 2 })
    const first = await set.settled(2, 1, 2)
    const [victim] = first.primary
    if (!victim) throw new Error('no primary')
    const lost = [victim, sole(first.hotbackup)]
    await Promise.all(lost.map(pod => set.deletePod(pod)))
    const second = await repaired(set, lost, 2, 1, 2)
    const all = (now: typeof first) => uids([...now.primary, ...now.hotbackup, ...now.coldbackup])
    // The pods that were not lost still exist, and as many pods are new as were lost.
    expect(
      all(first)
        .filter(uid => !all(second).includes(uid))
        .sort(),
    ).toEqual(uids(lost).sort())
    expect(uids(second.primary)).toContain(first.primary[1]?.metadata.uid)
    await Promise.all(second.primary.map(pod => set.deletePod(pod)))
    const third = await repaired(set, second.primary, 2, 1, 2)
    expect(
      all(second)
        .filter(uid => !all(third).includes(uid))
        .sort(),
    ).toEqual(uids(second.primary).sort())
    expect(third.primary.map(pod => pod.metadata.labels?.[labels.slot]).sort()).toEqual(['0', '1'])
  })
})

describe('pods that fail without going away', () => {
  it('a primary that stays unready is replaced by the hot backup and then deleted', async () => {
    await using world = await createWorld()
    const set = await world.createSet('unready', {
      replicas: 1,
      hotBackups: 1,
      failover: { unreadySeconds: 2 },
    })
    const before = await set.settled(1, 1, 0)
    const { name } = sole(before.primary).metadata
    await world.api.request('POST', `/api/v1/namespaces/${world.namespace}/pods/${name}:8080/proxy/fail`)
    const after = await repaired(set, before.primary, 1, 1, 0)
    expect(uids(after.primary)).toEqual(uids(before.hotbackup))
    expect((await set.get()).status?.lastFailover?.reason).toBe('Unready')
  })

  it('a primary whose container keeps failing is replaced as soon as the kubelet holds it back', async () => {
    await using world = await createWorld()
    const set = await world.createSet('crashing', { replicas: 1, hotBackups: 1 })
    const before = await set.settled(1, 1, 0)
    const { name } = sole(before.primary).metadata
    const crash = () =>
      world.api
        .request('POST', `/api/v1/namespaces/${world.namespace}/pods/${name}:8080/proxy/crash`)
        .catch(() => {})
    await crash()
    await eventually(async () => {
      if (!(await set.pods()).some(pod => pod.metadata.name === name && restartsOf(pod) > 0 && isReady(pod)))
        throw new Error('not restarted yet')
    })
    await crash()
    const after = await repaired(set, before.primary, 1, 1, 0)
    expect(uids(after.primary)).toEqual(uids(before.hotbackup))
    expect((await set.get()).status?.lastFailover?.reason).toBe('CrashLoop')
  })

  it('a template whose image is missing never takes a primary down, and can be taken back', async () => {
    await using world = await createWorld()
    const set = await world.createSet('broken', {
      replicas: 1,
      hotBackups: 1,
      failover: { unreadySeconds: 2 },
    })
    const before = await set.settled(1, 1, 0)
    await set.patch({ template: counterWith({ image: 'understudy/missing:1', imagePullPolicy: 'Never' }) })
    await eventually(async () => {
      const [hot] = await set.pods('hotbackup')
      expect(hot?.status?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('ErrImageNeverPull')
    })
    expect(uids(await set.pods('primary'))).toEqual(uids(before.primary))
    const { template } = (await set.patch({ template: counterWith({}) })).spec
    expect(template.spec?.containers[0]?.image).toBe('understudy.invalid/counter:0.1.0')
    const after = await set.settled(1, 1, 0)
    expect(uids(after.primary)).toEqual(uids(before.primary))
  })

  it('a good template change rolls every pod and keeps the slots', async () => {
    await using world = await createWorld()
    const set = await world.createSet('rolling', { replicas: 2, hotBackups: 1, coldBackups: 1 })
    const before = await set.settled(2, 1, 1)
    await set.patch({ template: counterWith({ env: [{ name: 'VERSION', value: '2' }] }) })
    const after = await set.settled(2, 1, 1)
    const all = (sets: typeof before) => uids([...sets.primary, ...sets.hotbackup, ...sets.coldbackup])
    expect(all(after).filter(uid => all(before).includes(uid))).toEqual([])
    expect(after.primary.map(pod => pod.metadata.labels?.[labels.slot]).sort()).toEqual(['0', '1'])
    for (const pod of after.primary)
      expect(pod.spec?.containers[0]?.env).toContainEqual({ name: 'VERSION', value: '2' })
  })
})

const why = needsNodes()

describe.skipIf(why)(`gates${why ? ` (${why})` : ''}`, () => {
  it('F13 F14: hold back everything behind them, on both sides of an init container, and open to nobody else', async () => {
    await using world = await createWorld()
    const initContainers = [
      { name: 'setup', image: 'understudy.invalid/waker:0.1.0', command: ['/waker', 'version'] },
    ]
    const template = counterWith({}, { initContainers })
    const statuses = async (set: TestSet) => {
      const pod = sole((await set.settled(0, 0, 1)).coldbackup)
      return {
        pod,
        states: pod.status?.initContainerStatuses?.map(({ name, state }) => [
          name,
          Object.keys(state ?? {})[0],
        ]),
      }
    }
    const firstSet = await world.createSet('first', {
      replicas: 0,
      coldBackups: 1,
      template,
      gatePosition: 'First',
    })
    const first = await statuses(firstSet)
    expect(first.states).toEqual([
      ['understudy-gate', 'running'],
      ['setup', 'waiting'],
    ])
    const lastSet = await world.createSet('last', {
      replicas: 0,
      coldBackups: 1,
      template,
      gatePosition: 'Last',
    })
    const last = await statuses(lastSet)
    expect(last.states).toEqual([
      ['setup', 'terminated'],
      ['understudy-gate', 'running'],
    ])

    // A stranger that can reach the gate does not know its token.
    const token = deriveToken(new Uint8Array(32), 'guess', last.pod.metadata.name)
    const request = {
      host: last.pod.status?.podIP ?? '',
      port: 20_000,
      token,
      kind: 'primary',
      timeoutMs: 2000,
      signal: AbortSignal.timeout(5000),
    } as const
    expect((await wake(request)).type).toBe('denied')
    expect(isAtGate(sole(await lastSet.pods()))).toBe(true)

    // Once woken, both continue in place. Behind a gate that comes first, the template's own init containers run only
    // now.
    for (const [set, { pod }] of [
      [firstSet, first],
      [lastSet, last],
    ] as const) {
      await set.scale({ replicas: 1 })
      const woken = sole((await set.settled(1, 0, 1)).primary)
      expect(woken.metadata.uid).toBe(pod.metadata.uid)
      const setup = woken.status?.initContainerStatuses?.find(({ name }) => name === 'setup')
      expect(setup?.state?.terminated?.exitCode).toBe(0)
    }
  })

  it('D7.wake-silent F31: a gate that is stopped costs its pod and never the loop', async () => {
    await using world = await createWorld()
    const set = await world.createSet('silent', {
      replicas: 1,
      hotBackups: 0,
      coldBackups: 1,
      wakeupTimeout: 3,
    })
    const before = await set.settled(1, 0, 1)
    const stopped = await pidsOf(sole(before.coldbackup).metadata.uid, 'waker')
    expect(stopped).toHaveLength(1)
    for (const pid of stopped) kill(pid, 'SIGSTOP')
    await set.scale({ replicas: 2 })
    // Meanwhile another set is created and repaired.
    const other = await world.createSet('other', { replicas: 1, hotBackups: 1, coldBackups: 0 })
    const mine = await other.settled(1, 1, 0)
    await other.deletePod(sole(mine.primary))
    await repaired(other, mine.primary, 1, 1, 0)
    const after = await set.settled(2, 0, 1)
    expect(uids([...after.primary, ...after.coldbackup])).not.toContain(sole(before.coldbackup).metadata.uid)
    await noted(world, 'WakeFailed')
  })
})
