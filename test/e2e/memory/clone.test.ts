/** Pods that begin with the memory of another pod, which runs on. */
import { describe, expect, it } from 'vitest'
import {
  type CounterSet,
  count,
  createCounters,
  holderOf,
  killApp,
  promoted,
  readSlot,
  restartsOf,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { createWorld } from '../lib/world.ts'

/** Resolves when both slots of the set have a primary of their own. */
const begun = (set: CounterSet, wanted: number) =>
  eventually(async () => {
    const slots = await slotsOf(set)
    expect(slots.map(({ cloneOf }) => cloneOf)).toEqual(Array.from({ length: wanted }, () => undefined))
    return slots
  })

describe.skipIf(needsNodes())('a clone', () => {
  it('MP-28: of a primary begins with its memory while that runs on; each goes its own way, and survives its own failure', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const source: CounterSet = { api, namespace, name: 'source' }
    await createCounters(source, { replicas: 1, hotBackups: 1 })
    await saved(source)
    const [told] = await count(source, 7)
    await saved(source)
    const [original] = await slotsOf(source)
    if (original === undefined) throw new Error('no slot')
    const clones: CounterSet = { api, namespace, name: 'clones' }
    await createCounters(clones, { replicas: 2, hotBackups: 1, cloneFrom: { pod: original.holder.name } })
    const slots = await begun(clones, 2)
    for (const slot of slots) expect(await readSlot(clones, slot)).toBe(told)
    expect(await readSlot(source, original)).toBe(told)
    expect((await slotsOf(source))[0]?.holder).toEqual(original.holder)
    // From here on they differ.
    const numbers = await count(clones, 2)
    await saved(clones)
    const [first] = await slotsOf(clones)
    if (first === undefined) throw new Error('no slot')
    const dead = await holderOf(clones, first)
    await killApp(dead)
    expect(await readSlot(clones, await promoted(clones, first))).toBe(numbers[0])
    expect(await readSlot(source, original)).toBe(told)
    expect(await restartsOf(source)).toEqual({})
  })
})
