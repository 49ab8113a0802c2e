import { execFile } from 'node:child_process'
import { kill } from 'node:process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { nodeReports } from '../../../src/api/node-report.ts'
import {
  type NumberedSlotLease,
  parseNumberedSlotLease,
  slotLeaseName,
} from '../../../src/api/numbered-slot.ts'
import { events, leases, type Pod, pods } from '../../../src/kube/resources.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, restartsOf, type TestSet, type World } from '../lib/world.ts'

const counter = specimen('counter')
const run = promisify(execFile)

const created = (world: World, coldBackups: number, spec: object = {}) =>
  world.createSet('kept', {
    replicas: 1,
    hotBackups: 0,
    coldBackups,
    checkpoint: { interval: '1s' },
    template: counter.template,
    ...spec,
  })

async function leaseOf({ api, namespace }: World, set: TestSet): Promise<NumberedSlotLease> {
  const lease = parseNumberedSlotLease(await api.get(leases, { namespace, name: slotLeaseName(set.name, 0) }))
  if (lease === undefined) throw new Error('the Lease says nothing')
  return lease
}

async function holderOf(world: World, { holder }: NumberedSlotLease): Promise<{ pod: Pod; ip: string }> {
  const pod = await world.api.get(pods, { namespace: world.namespace, name: holder.name })
  if (pod.status?.podIP === undefined) throw new Error(`${holder.name} has no address`)
  return { pod, ip: pod.status.podIP }
}

/** Waits until a pod that does not exist yet could restore memory that the slot's primary has now. */
async function saved(world: World, set: TestSet): Promise<void> {
  const since = Date.now()
  const { incarnation } = await leaseOf(world, set)
  await eventually(async () => {
    const { items } = await world.api.list(nodeReports, {})
    const copies = items
      .flatMap(({ status }) => status?.slots ?? [])
      .filter(slot => slot.incarnation === incarnation && slot.usable === 'Cold')
    if (!copies.some(({ takenAt }) => Date.parse(takenAt ?? '') > since)) throw new Error('not saved yet')
  }, 120_000)
}

/** Counts, waits for a save, and kills the app. @returns the count, and the Lease before the kill */
async function lose(world: World, set: TestSet): Promise<{ expected: number; before: NumberedSlotLease }> {
  await eventually(() => leaseOf(world, set))
  await saved(world, set)
  const before = await leaseOf(world, set)
  const { pod, ip } = await holderOf(world, before)
  for (let i = 0; i < 7; i += 1) await counter.add(ip)
  const expected = await counter.read(ip)
  await saved(world, set)
  const [pid] = await pidsOf(pod.metadata.uid, 'counter')
  if (pid === undefined) throw new Error('no counter runs')
  kill(pid, 'SIGKILL')
  return { expected, before }
}

/** Waits until the slot's next primary answers. */
async function succeeded(world: World, set: TestSet, before: NumberedSlotLease) {
  const lease = await eventually(async () => {
    const now = await leaseOf(world, set)
    if (now.epoch === before.epoch) throw new Error('not promoted yet')
    return now
  }, 120_000)
  const read = await eventually(async () => counter.read((await holderOf(world, lease)).ip), 120_000)
  return { lease, read, ...(await holderOf(world, lease)) }
}

describe.skipIf(needsNodes())('failovers with memory where no hot backup is', () => {
  it('D6.cold-memory: a cold backup is woken, and goes on where the primary was', async () => {
    await using world = await createWorld()
    const set = await created(world, 1)
    const { coldbackup } = await set.settled(1, 0, 1)
    // One init container: the gate, which has put the waker in place.
    expect(coldbackup[0]?.spec?.initContainers).toHaveLength(1)
    const { expected, before } = await lose(world, set)
    const { read, lease, pod } = await succeeded(world, set, before)
    expect(read).toBe(expected)
    expect([lease.incarnation, pod.metadata.uid]).toEqual([before.incarnation, coldbackup[0]?.metadata.uid])
    expect(restartsOf(pod)).toBe(0)
    await set.settled(1, 0, 1)
    expect((await set.get()).status?.lastFailover?.how).toBe('Cold')
  })

  it('D6.fresh-memory: with no backup at all a pod is made for the slot, and goes on where the primary was', async () => {
    await using world = await createWorld()
    const set = await created(world, 0)
    const { expected, before } = await lose(world, set)
    const { read, lease, pod } = await succeeded(world, set, before)
    expect(read).toBe(expected)
    expect(lease.incarnation).toBe(before.incarnation)
    expect(restartsOf(pod)).toBe(0)
    await set.settled(1, 0, 0)
    expect((await set.get()).status?.lastFailover?.how).toBe('Created')
  })

  it('D7.blocked: a gate that TCP does not reach is opened by its node; foreign messages open nothing', async () => {
    await using world = await createWorld()
    const set = await created(world, 1, { wakeupTimeout: 20 })
    const { coldbackup } = await set.settled(1, 0, 1)
    const [cold] = coldbackup
    const uid = cold?.metadata.uid ?? ''
    const [gate] = await pidsOf(uid, 'waker')
    const { items } = await world.api.list(pods, { namespace: 'understudy-system' })
    const cluster = await playground()
    // A stranger's message, and one that opened another gate.
    const [command = '', ...args] = cluster.argvInNetwork(cluster.nodes[0] ?? '', [
      process.execPath,
      '--eval',
      `const s = require('node:net').connect(20000, '${cold?.status?.podIP}', () => s.write('understudy/1 wake ${'0'.repeat(64)} primary\\n')); s.pipe(process.stdout)`,
    ])
    expect((await run(command, args)).stdout).toMatch(/^understudy\/1 denied /)
    await set.settled(1, 0, 1)
    // Its answers no longer reach the operator.
    for (const { status } of items)
      if (status?.podIP !== undefined)
        await run('nsenter', [
          '--target',
          String(gate),
          '--net',
          'ip',
          'route',
          'add',
          'blackhole',
          `${status.podIP}/32`,
        ])
    const { expected, before } = await lose(world, set)
    const { read, pod } = await succeeded(world, set, before)
    expect(read).toBe(expected)
    expect(pod.metadata.uid).toBe(uid)
  })

  it('D6.restored-empty: what nobody can bring back begins anew, and says so', async () => {
    await using world = await createWorld()
    // The agents do not notice this deletion, so everything still counts as kept.
    const set = await created(world, 0, { checkpoint: { interval: '1h', giveUpAfterSeconds: 30 } })
    await eventually(async () => {
      expect((await set.get()).status?.slots?.[0]?.protection).toBe('Cold')
    }, 120_000)
    const before = await leaseOf(world, set)
    const { pod, ip } = await holderOf(world, before)
    await counter.add(ip)
    const cluster = await playground()
    const torn = `find /run/understudy /var/lib/understudy -depth -path '*${world.namespace}.*' -delete`
    // find fails where an agent adds or removes a file meanwhile.
    for (const node of cluster.nodes) await eventually(() => cluster.inNode(node, ['sh', '-c', torn]))
    const [pid] = await pidsOf(pod.metadata.uid, 'counter')
    if (pid === undefined) throw new Error('no counter runs')
    kill(pid, 'SIGKILL')
    const lease = await eventually(async () => {
      const now = await leaseOf(world, set)
      if (now.incarnation === before.incarnation) throw new Error('the slot has not begun anew')
      return now
    }, 180_000)
    expect(await eventually(async () => counter.read((await holderOf(world, lease)).ip))).toBe(0)
    await eventually(async () => {
      const { items } = await world.api.list(events, {
        namespace: world.namespace,
        fieldSelector: 'reason=RestoredEmpty',
      })
      expect(items).toHaveLength(1)
    })
    expect((await set.get()).status?.lastFailover?.how).toBe('Empty')
  })
})
