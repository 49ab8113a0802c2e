// Long because its cases share a stage, and what is waited for there.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { endpointSlices, leases, namespaces, type Pod, pods } from '../../../src/kube/resources.ts'
import { type FaultProxy, type Match, startFaultProxy } from '../fault-proxy.ts'
import { startFakeKubelet } from '../lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator, untilOver } from '../lib/operator-process.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let dir: string
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  dir = await mkdtemp(join(tmpdir(), 'understudy-memory-crashes-'))
})
afterAll(async () => {
  await api.close()
  await rm(dir, { recursive: true })
})

const isWrite: Match = ({ method, path }) =>
  method !== 'GET' && /\/(pods|backuppodsets|leases|services|endpointslices)\b/.test(path)

interface Stage {
  readonly namespace: string
  readonly proxy: FaultProxy
  readonly agents: FakeAgents
  start(): OperatorProcess
}

async function onStage(run: (stage: Stage) => Promise<void>) {
  const namespace = `memory-crash-${randomBytes(4).toString('hex')}`
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  const proxy = await startFaultProxy(await loadConnection({ kubeconfig: adminKubeconfig() }))
  const kubeconfig = join(dir, namespace)
  await writeFile(kubeconfig, proxy.kubeconfig)
  const operators: OperatorProcess[] = []
  // Spreads primaries away from each other and from backups, so that every backup can take over every slot.
  const nodes = ['m-0', 'm-1', 'm-2', 'm-3']
  // Remember placements here: pods that are created together do not show their nodes yet.
  const placed = new Map<string, string>()
  const place = ({ metadata: { uid } }: Pod, others: readonly Pod[]) => {
    const load = (node: string) => others.filter(other => placed.get(other.metadata.uid) === node).length
    const node = placed.get(uid) ?? nodes.reduce((best, each) => (load(each) < load(best) ? each : best))
    placed.set(uid, node)
    return node
  }
  try {
    await using _kubelet = startFakeKubelet(api, namespace, { place })
    await using agents = await startFakeAgents(api, namespace, nodes)
    await run({
      namespace,
      proxy,
      agents,
      start: () => {
        const operator = startOperator(kubeconfig, namespace, '--no-leader-elect')
        operators.push(operator)
        return operator
      },
    })
    await api.delete(backupPodSets, { namespace, name: 'set' })
  } finally {
    for (const operator of operators) await operator[Symbol.asyncDispose]()
    await proxy.close()
  }
}

const slotsOf = async (namespace: string): Promise<NumberedSlotLease[]> =>
  (await api.list(leases, { namespace, labelSelector: labels.set })).items
    .flatMap(lease => parseNumberedSlotLease(lease) ?? [])
    .sort((a, b) => a.slot - b.slot)

/** Waits until all pods exist, every slot has two candidates, no older pod is left, and the endpoints agree. */
async function settled(namespace: string): Promise<readonly NumberedSlotLease[]> {
  return vi.waitFor(
    async () => {
      const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name: 'set' })
      const condition = (type: string) => status?.conditions?.find(each => each.type === type)
      expect([condition('Ready')?.status, condition('CheckpointReady')?.status]).toEqual(['True', 'True'])
      const slots = await slotsOf(namespace)
      expect(slots.map(({ slot }) => slot)).toEqual([0, 1])
      const all = (await api.list(pods, { namespace })).items
      expect(all.map(pod => pod.metadata.labels?.[labels.type]).sort()).toEqual([
        'hotbackup',
        'hotbackup',
        'primary',
        'primary',
      ])
      for (const { slot, holder, heir } of slots) {
        const pod = all.find(each => each.metadata.uid === holder.uid)
        expect(pod?.metadata.labels).toMatchObject({ type: 'primary', [labels.slot]: `${slot}` })
        expect(all.find(each => each.metadata.uid === heir?.uid)?.metadata.labels?.[labels.type]).toBe(
          'hotbackup',
        )
        const slice = await api.get(endpointSlices, { namespace, name: `set-${slot}-understudy-0` })
        expect(slice.endpoints?.map(({ addresses }) => addresses[0])).toEqual([pod?.status?.podIP])
      }
      return slots
    },
    { timeout: 300_000, interval: 50 },
  )
}

const create = (namespace: string, over: object = {}) =>
  api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { name: 'set' },
      spec: {
        replicas: 2,
        hotBackups: 2,
        checkpoint: { copies: 3 },
        service: { ports: [{ port: 80 }], perSlot: true },
        template: { spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'app', image: 'app' }] } },
        ...over,
      },
    },
    { namespace },
  )

/**
 * The life of a set: it is created, a primary dies, the other one is deleted. No memory may be lost, and no slot may be
 * promoted twice.
 */
async function life({ namespace, agents }: Stage) {
  await create(namespace)
  const made = await settled(namespace)
  const [first] = made
  if (first === undefined) throw new Error('no slot')
  const before = agents.stages.length
  await agents.declareDead(first.holder.name)
  const afterDeath = await vi.waitFor(
    async () => {
      const slots = await settled(namespace)
      expect(slots[0]?.holder.uid).not.toBe(first.holder.uid)
      return slots
    },
    { interval: 50 },
  )
  expect(afterDeath.map(({ incarnation: id }) => id)).toEqual(made.map(({ incarnation: id }) => id))
  expect(afterDeath.map(({ epoch }) => epoch)).toEqual([2, 1])
  expect(agents.stages.slice(before)).toEqual([`${afterDeath[0]?.holder.name} 2`])
  const second = afterDeath[1]
  if (second === undefined) throw new Error('no second slot')
  await api.delete(pods, { namespace, name: second.holder.name })
  const afterDeletion = await vi.waitFor(
    async () => {
      const slots = await settled(namespace)
      expect(slots[1]?.holder.uid).not.toBe(second.holder.uid)
      return slots
    },
    { interval: 50 },
  )
  expect(afterDeletion.map(({ incarnation: id }) => id)).toEqual(made.map(({ incarnation: id }) => id))
  expect(afterDeletion.map(({ epoch }) => epoch)).toEqual([2, 2])
}

/** Waits until the only slot has its primary, and another node has its memory. */
const awake = (namespace: string): Promise<NumberedSlotLease> =>
  vi.waitFor(
    async () => {
      const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name: 'set' })
      const condition = (type: string) => status?.conditions?.find(each => each.type === type)
      expect([condition('Ready')?.status, condition('CheckpointReady')?.status]).toEqual(['True', 'True'])
      const [slot, ...others] = await slotsOf(namespace)
      if (slot === undefined) throw new Error('no slot')
      expect(others).toEqual([])
      expect(slot).not.toHaveProperty('suspended')
      const all = (await api.list(pods, { namespace })).items
      expect(all.map(({ metadata }) => metadata.uid)).toEqual([slot.holder.uid])
      return slot
    },
    { timeout: 300_000, interval: 50 },
  )

const suspend = (namespace: string, value: boolean) =>
  api.patch(backupPodSets, { namespace, name: 'set' }, { type: 'merge', body: { spec: { suspend: value } } })

describe('D16.asleep: suspend and resume, and faults at any write', () => {
  it('each operator is killed after two writes: no memory is lost, and no pod is left or made twice', async () => {
    await onStage(async stage => {
      const { namespace, agents } = stage
      let operator = stage.start()
      await operator.leading()
      await create(namespace, { replicas: 1, hotBackups: 0, service: undefined })
      const before = await awake(namespace)
      let count = 0
      let kills = 0
      let restarting: Promise<void> | undefined
      stage.proxy.between(
        () => {
          count += 1
          if (count % 2 !== 0 || restarting !== undefined) return
          kills += 1
          const killed = operator
          killed.kill()
          restarting = untilOver(killed, stage.proxy).then(() => {
            operator = stage.start()
            restarting = undefined
          })
        },
        isWrite,
        8,
      )
      await suspend(namespace, true)
      await vi.waitFor(
        async () => {
          const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name: 'set' })
          const word = status?.conditions?.find(({ type }) => type === 'Suspended')
          expect(word, JSON.stringify(status)).toMatchObject({ status: 'True' })
          expect((await api.list(pods, { namespace })).items).toEqual([])
          const [slot] = await slotsOf(namespace)
          expect(slot).toMatchObject({ suspended: true, incarnation: before.incarnation, epoch: 1 })
        },
        { timeout: 300_000, interval: 50 },
      )
      expect(agents.stages).toEqual([])
      await suspend(namespace, false)
      const after = await awake(namespace)
      expect(after).toMatchObject({ incarnation: before.incarnation, epoch: 2 })
      expect(agents.stages).toEqual([`${after.holder.name} 2`])
      await restarting
      expect(kills).toBeGreaterThan(2)
    })
  }, 900_000)
})

describe('memory and faults at any write', () => {
  let writes = 0
  beforeAll(async () => {
    await onStage(async stage => {
      await stage.start().leading()
      await life(stage)
      writes = stage.proxy.requests.filter(isWrite).length
    })
    expect(writes).toBeGreaterThan(15)
  }, 900_000)

  it.each([0, 1, 2])(
    'SIGKILL after write 3n+%i: the next start goes on with what the Lease says',
    async rest => {
      await onStage(async stage => {
        let operator = stage.start()
        await operator.leading()
        let count = 0
        let kills = 0
        let isStarting = false
        let restarting: Promise<void> = Promise.resolve()
        stage.proxy.between(
          () => {
            count += 1
            // Writes already in flight when the operator died must not start a second one.
            if (count % 3 !== rest || isStarting) return
            isStarting = true
            kills += 1
            operator.kill()
            const killed = operator
            restarting = untilOver(killed, stage.proxy).then(() => {
              operator = stage.start()
              isStarting = false
            })
          },
          isWrite,
          writes,
        )
        await life(stage)
        await restarting
        expect(kills).toBeGreaterThan(3)
      })
    },
    900_000,
  )

  it('D7.epoch: the answer to every second write is lost: no slot is promoted twice', async () => {
    await onStage(async stage => {
      await stage.start().leading()
      let count = 0
      stage.proxy.loseResponse(writes * 2, request => {
        if (!isWrite(request)) return false
        count += 1
        return count % 2 === 0
      })
      await life(stage)
    })
  }, 900_000)

  it.each([409, 500])(
    'every third write is answered %i without being executed',
    async code => {
      await onStage(async stage => {
        await stage.start().leading()
        let count = 0
        stage.proxy.status(code, {
          count: writes,
          match: request => {
            if (isWrite(request)) count += 1
            return isWrite(request) && count % 3 === 0
          },
        })
        await life(stage)
      })
    },
    900_000,
  )
})
