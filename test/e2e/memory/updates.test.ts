import { describe, expect, it } from 'vitest'
import { events } from '../../../src/kube/resources.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  holderOf,
  killApp,
  promoted,
  readSlot,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { createWorld, type World } from '../lib/world.ts'

const inside = ({ api, namespace }: World): CounterSet => ({ api, namespace, name: 'kept' })

const template = (note: string, container: object = {}) => ({
  ...counter.template,
  metadata: { ...counter.template.metadata, annotations: { note } },
  spec: {
    ...counter.template.spec,
    containers: (counter.template.spec?.containers ?? []).map(one => ({ ...one, ...container })),
  },
})

const created = async (world: World, spec: object = {}) => {
  const set = await world.createSet('kept', {
    replicas: 1,
    hotBackups: 1,
    checkpoint: { interval: '1s' },
    template: template('first'),
    ...spec,
  })
  await eventually(async () => expect(await slotsOf(inside(world))).toHaveLength(1))
  await saved(inside(world))
  return set
}

const slotOf = async (world: World) => {
  const [lease] = await slotsOf(inside(world))
  if (lease === undefined) throw new Error('no slot')
  return lease
}

const eventsOf = async ({ api, namespace }: World, reason: string) =>
  (await api.list(events, { namespace, fieldSelector: `regarding.name=kept,reason=${reason}` })).items

describe.skipIf(needsNodes())('a changed template of a set that keeps memory', () => {
  it('D3.roll-loses-nothing: a client that counts across a roll misses none of its own numbers', async () => {
    await using world = await createWorld()
    const set = await created(world, { updateStrategy: { type: 'RollingUpdate' } })
    const before = await slotOf(world)
    const holder = await holderOf(inside(world), before)
    let acknowledged = 0
    const over = new AbortController()
    // Every answer is the next number: an acknowledged count must be in the memory of each successor.
    const client = (async () => {
      const answers: number[] = []
      while (!over.signal.aborted) {
        const lease = await slotOf(world)
        try {
          await counter.add(addressOf(await holderOf(inside(world), lease)))
          acknowledged += 1
          answers.push(await counter.read(addressOf(await holderOf(inside(world), lease))))
        } catch {
          // Between two primaries no pod answers, and it is unknown whether the last request was counted.
        }
      }
      return answers
    })()
    try {
      await set.patch({ template: template('second') })
      await promoted(inside(world), before)
      await eventually(async () => {
        const pods = await set.pods()
        expect(new Set(pods.map(pod => pod.metadata.annotations?.['note']))).toEqual(new Set(['second']))
      }, 120_000)
    } finally {
      over.abort()
    }
    const answers = await client
    const after = await slotOf(world)
    expect(after.incarnation).toBe(before.incarnation)
    expect(after.holder.uid).not.toBe(holder.metadata.uid)
    // Monotonic: no answer came from fresh memory, and none was older than an earlier one.
    expect(answers).toEqual([...answers].sort((a, b) => a - b))
    expect(await readSlot(inside(world), after)).toBeGreaterThanOrEqual(acknowledged)
    expect(await eventsOf(world, 'StateWillBeLost')).toEqual([])
  })

  it('D3.on-delete: one that memory does not fit changes nothing; a crash still brings the memory back', async () => {
    await using world = await createWorld()
    const set = await created(world)
    const before = await slotOf(world)
    const uids = async () => (await set.pods()).map(pod => pod.metadata.uid).sort()
    const pods = await uids()
    await set.patch({ template: template('second', { workingDir: '/', args: ['--other'] }) })
    await eventually(async () => expect(await eventsOf(world, 'UpdateOnDelete')).not.toEqual([]))
    const [expected] = await count(inside(world), 5)
    await saved(inside(world))
    expect(await uids()).toEqual(pods)
    await killApp(await holderOf(inside(world), before))
    const next = await promoted(inside(world), before)
    expect(await readSlot(inside(world), next)).toBe(expected)
    // The next successor could do the same.
    await saved(inside(world))
  })

  it('D3.allow-state-loss: what is lost is said before', async () => {
    await using world = await createWorld()
    const set = await created(world, { updateStrategy: { type: 'RollingUpdate', allowStateLoss: true } })
    const before = await slotOf(world)
    await count(inside(world), 5)
    const securityContext = { readOnlyRootFilesystem: true }
    await set.patch({ template: template('second', { securityContext }) })
    await eventually(async () => {
      const lease = await slotOf(world)
      expect(lease.incarnation).not.toBe(before.incarnation)
      expect(await counter.read(addressOf(await holderOf(inside(world), lease)))).toBe(0)
    }, 180_000)
    const [said] = await eventsOf(world, 'StateWillBeLost')
    const made = Date.parse(
      (await holderOf(inside(world), await slotOf(world))).metadata.creationTimestamp ?? '',
    )
    expect(Date.parse(said?.eventTime ?? '')).toBeLessThan(made + 1_000)
  })
})
