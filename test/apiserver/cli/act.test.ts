/** `checkpoint` and `promote` against a real API server and the operator; nodes and agents are fakes. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type BackupPodSetSpec, backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations, labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import type { Promoted } from '../../../src/cli/promote/promote.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { leases, namespaces, pods } from '../../../src/kube/resources.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from '../memory/fake-agents.ts'
import { cli } from './run.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `act-${randomBytes(4).toString('hex')}`
const run = (...args: string[]) => cli([...args, '-n', namespace])

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  kubelet = startFakeKubelet(api, namespace, {
    place: ({ metadata }) => (metadata.labels?.['type'] === 'primary' ? 'cli-a' : 'cli-b'),
  })
  agents = await startFakeAgents(api, namespace, ['cli-a', 'cli-b'])
  operator = startOperatorHere(namespace)
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

/**
 * Creates a set and waits until slot 0 could be taken over (or, without memory, until its pods exist).
 * @returns name of its primary
 */
async function settled(name: string, spec: Partial<BackupPodSetSpec>, protection?: string): Promise<string> {
  const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
  await api.create(
    backupPodSets,
    {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name } },
      spec: { replicas: 1, hotBackups: 1, template, ...spec },
    },
    { namespace },
  )
  return vi.waitFor(
    async () => {
      const { status } = await api.get(backupPodSets, { namespace, name })
      expect(status).toMatchObject({ readyReplicas: 1, readyHotbackups: spec.hotBackups ?? 1 })
      expect(status?.slots?.[0]?.protection).toBe(protection)
      return status?.slots?.[0]?.pod ?? ''
    },
    { interval: 50 },
  )
}

/** The lines of finished phases, without their times. A phase that takes long also has a line while it runs. */
const phases = (err: string): string[] =>
  err
    .split('\n')
    .filter(line => !line.startsWith('...'))
    .map(line => line.replace(/ +[\d.]+ s {2}/, ' | '))

describe('checkpoint', () => {
  it('has every primary saved anew, and says as which generation and where', async () => {
    const primary = await settled('saved', { checkpoint: {} }, 'Frozen')
    const { exitCode, out, err } = await run('checkpoint', 'saved', '--wait')
    expect(exitCode).toBe(0)
    expect(phases(err)).toEqual([
      `ok  slot 0: save ${primary} | generation 2`,
      'ok  slot 0: wait until a pod could resume with it | cli-b (Frozen)',
    ])
    expect(out).toMatch(
      new RegExp(
        `^slot 0: generation 2 of ${primary}, 4\\.1 kB, stopped for 7\\.2 ms, after .*; usable on cli-b \\(Frozen\\)$`,
      ),
    )
    const again = await run('checkpoint', 'saved', '--slot', '0', '-o', 'json')
    expect(again.err).toBe('')
    expect(JSON.parse(again.out)).toMatchObject({
      checkpoints: [{ slot: 0, pod: primary, node: 'cli-a', generation: 3 }],
    })
  })

  it('that does not come is told as late, with the reason', async () => {
    const primary = await settled('deaf', { checkpoint: {} }, 'Frozen')
    agents.deaf.add(primary)
    const { exitCode, err } = await run('checkpoint', 'deaf', '--timeout', '1')
    expect(exitCode).toBe(4)
    expect(err).toContain(`slot 0: ${primary} has not been saved within --timeout`)
  })

  it('of a set without memory, of a slot that is not there, of a set that is not there', async () => {
    await settled('plain', {})
    expect(await run('checkpoint', 'plain')).toMatchObject({ exitCode: 1 })
    await settled('small', { checkpoint: {} }, 'Frozen')
    const { exitCode, err } = await run('checkpoint', 'small', '--slot', '7')
    expect(exitCode).toBe(1)
    expect(err).toBe('error: small has no slot 7\n  → choose one of: 0')
    expect((await run('checkpoint', 'smal')).err).toContain('did you mean small?')
    expect((await run('checkpoint', 'small', '--slot', 'first')).exitCode).toBe(2)
  })
})

describe('promote', () => {
  it('D7.handed-over: a hot backup takes the slot over from a primary that stands still, and nothing is lost', async () => {
    const primary = await settled('handed', { checkpoint: {} }, 'Frozen')
    const { exitCode, out } = await run('promote', 'handed', '0', '-o', 'json')
    expect(exitCode).toBe(0)
    const promoted = JSON.parse(out) as Promoted
    expect(promoted).toMatchObject({ slot: 0, from: primary, epoch: 2, handedOver: true })
    expect(promoted.checkpoint).toBeUndefined()
    const { status } = await api.get(backupPodSets, { namespace, name: 'handed' })
    expect(status?.slots?.[0]).toMatchObject({ pod: promoted.to, epoch: 2, ready: true })
    // It was no failover, and the primary was not deleted before its successor existed.
    expect(status?.lastFailover).toBeUndefined()
    await vi.waitFor(
      () => expect(api.get(pods, { namespace, name: primary })).rejects.toMatchObject({ code: 'NotFound' }),
      { interval: 100 },
    )
    const [lease] = (await api.list(leases, { namespace, labelSelector: `${labels.set}=handed` })).items
    expect(lease && parseNumberedSlotLease(lease)).toMatchObject({
      holder: { name: promoted.to },
      handover: undefined,
    })
  })

  it('a primary that cannot be saved for the last time stays, and the wish is taken back', async () => {
    const primary = await settled('standing', { checkpoint: {} }, 'Frozen')
    agents.deaf.add(primary)
    const { exitCode, err } = await run('promote', 'standing', '0', '--timeout', '2')
    expect(exitCode).toBe(4)
    expect(err).toContain('it keeps running, and nothing is lost')
    const { metadata } = await api.get(pods, { namespace, name: primary })
    expect(metadata.deletionTimestamp).toBeUndefined()
    expect(metadata.annotations?.[annotations.handoverRequested]).toBeUndefined()
    await vi.waitFor(
      async () => {
        const { items } = await api.list(leases, { namespace, labelSelector: `${labels.set}=standing` })
        const [lease] = items.flatMap(item => parseNumberedSlotLease(item) ?? [])
        expect(lease).toMatchObject({ holder: { name: primary }, handover: undefined })
      },
      { interval: 50 },
    )
  })

  it('with --delete it saves, deletes, and follows until the successor serves with what was saved', async () => {
    const primary = await settled('moved', { checkpoint: {} }, 'Frozen')
    const { exitCode, out, err } = await run('promote', 'moved', '0', '--delete', '-o', 'json')
    expect(exitCode).toBe(0)
    expect(err).toContain('generation 2')
    const promoted = JSON.parse(out) as Promoted
    expect(promoted).toMatchObject({ slot: 0, from: primary, epoch: 2, handedOver: false })
    expect(promoted.checkpoint).toMatchObject({ generation: 2 })
    expect(promoted.seconds).toBeGreaterThan(0)
    const { status } = await api.get(backupPodSets, { namespace, name: 'moved' })
    expect(status?.slots?.[0]).toMatchObject({ pod: promoted.to, epoch: 2, ready: true })
    await expect(api.get(pods, { namespace, name: primary })).rejects.toMatchObject({ code: 'NotFound' })
  })

  const untouched = async (name: string) => {
    const { metadata } = await api.get(pods, { namespace, name })
    expect(metadata.deletionTimestamp).toBeUndefined()
    expect(metadata.annotations?.[annotations.checkpointRequested]).toBeUndefined()
  }

  it('refuses where nobody has the memory, says what to do, and touches nothing', async () => {
    agents.useless.add('cli-b')
    try {
      const primary = await settled('alone', { checkpoint: {} }, 'None')
      const { exitCode, err } = await run('promote', 'alone', '0')
      expect(exitCode).toBe(3)
      expect(err).toContain('no pod could resume with the memory of slot 0')
      expect(err).toContain('--allow-state-loss')
      await untouched(primary)
    } finally {
      agents.useless.delete('cli-b')
      await agents.report()
    }
  })

  it('refuses where no memory is kept, unless that is meant', async () => {
    const primary = await settled('paper', {})
    expect(await run('promote', 'paper', '0')).toMatchObject({ exitCode: 3 })
    await untouched(primary)
    const { exitCode, out, err } = await run('promote', 'paper', '0', '--allow-state-loss')
    expect(exitCode).toBe(0)
    expect(out).toMatch(new RegExp(`^slot 0: ${primary} → paper-[0-9a-f]{12} serves.*with its own memory$`))
    const successor = / → (\S+) serves/.exec(out)?.[1]
    expect(phases(err)).toEqual([
      `ok  slot 0: delete ${primary} | ${successor} takes over`,
      `ok  slot 0: wait until the successor serves | ${successor}`,
    ])
  })

  it('refuses where the memory cannot be saved before, and deletes nothing', async () => {
    const primary = await settled('stuck', { checkpoint: {} }, 'Frozen')
    agents.deaf.add(primary)
    const { exitCode, err } = await run('promote', 'stuck', '0', '--delete', '--timeout', '1')
    expect(exitCode).toBe(3)
    expect(err).toContain('nothing was done')
    expect((await api.get(pods, { namespace, name: primary })).metadata.deletionTimestamp).toBeUndefined()
  })

  it('refuses a set that is paused', async () => {
    await settled('paused', { checkpoint: {} }, 'Frozen')
    await api.patch(
      backupPodSets,
      { namespace, name: 'paused' },
      { type: 'merge', body: { spec: { paused: true } } },
    )
    expect(await run('promote', 'paused', '0', '--allow-state-loss')).toMatchObject({ exitCode: 3 })
  })
})

describe('suspend and resume', () => {
  it('ends the pods with their memory saved, says where it is, and has them back', async () => {
    const primary = await settled('napping', { checkpoint: {} }, 'Frozen')
    const asleep = await run('suspend', 'napping')
    expect([asleep.exitCode, asleep.err]).toMatchObject([0, expect.stringContaining('ok  suspend napping')])
    expect(asleep.out).toMatch(
      /^napping is suspended: .*\n {2}slot 0: generation 1, .*4\.1 kB, on cli-a, cli-b/,
    )
    const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=napping` })
    expect(items).toEqual([])
    const awake = await run('resume', 'napping', '-o', 'json')
    expect(awake.exitCode).toBe(0)
    expect(JSON.parse(awake.out)).toMatchObject({ suspended: false, slots: [{ slot: 0, epoch: 2 }] })
    expect(awake.out).not.toContain(primary)
  })

  it('exits with 4 while a primary cannot be saved, which runs on', async () => {
    const primary = await settled('awake', { checkpoint: {} }, 'Frozen')
    agents.deaf.add(primary)
    const { exitCode, err } = await run('suspend', 'awake', '--timeout', '3')
    expect([exitCode, err]).toMatchObject([4, expect.stringContaining('nothing is lost')])
    expect((await run('resume', 'awake')).exitCode).toBe(0)
    expect((await api.get(pods, { namespace, name: primary })).metadata.deletionTimestamp).toBeUndefined()
    agents.deaf.delete(primary)
  })
})

describe('D19.pause: pause and resume', () => {
  it('leave a set as it is, and take that back', async () => {
    await settled('still', { checkpoint: {} }, 'Frozen')
    const paused = await run('pause', 'still')
    expect([paused.exitCode, paused.out]).toMatchObject([0, expect.stringContaining('still is paused')])
    expect((await api.get(backupPodSets, { namespace, name: 'still' })).spec.paused).toBe(true)
    const asleep = await run('suspend', 'still')
    expect(asleep.err).toContain('→ run `kubectl understudy resume still` first')
    expect((await run('resume', 'still')).exitCode).toBe(0)
    expect((await api.get(backupPodSets, { namespace, name: 'still' })).spec.paused).toBe(false)
  })
})
