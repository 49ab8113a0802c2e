import { expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { kept, lease, nameOf, peer, snapshot, usableAt } from '../testing/fake/snapshots.ts'
import { createUnwanted } from './unwanted.ts'

/** Whether the memory is due on node `a`, for so many calls 15 s apart. */
async function asked(slot: SlotLease, times: number, written: (time: number) => string, generation = 5) {
  const clock = createFakeClock()
  const unwanted = createUnwanted(clock)
  const due: boolean[] = []
  for (let time = 0; time < times; time += 1) {
    const said = { ...usableAt('c', slot), updatedAt: written(time) }
    const slots = said.slots.map(each => ({ ...each, epoch: slot.epoch }))
    const world = snapshot({
      slots: [slot],
      kept: new Map([[nameOf(), kept({ generation })]]),
      reports: new Map([['c', peer('c', { ...said, slots })]]),
    })
    due.push(unwanted.due(world, [slot]).length > 0)
    await clock.advance(15_000)
  }
  return due
}

const speaks = (time: number) => `at ${time}`
const is = (pattern: string) => [...pattern].map(each => each === '1')

it('what no Lease asks this node for is thrown away after a minute', async () => {
  expect(await asked(lease({ node: 'b', holders: ['c'] }), 6, speaks)).toEqual(is('000011'))
  expect(await asked(lease({ node: 'b', holders: ['c', 'a'] }), 6, speaks)).toEqual(is('000000'))
})

it('D7.let-go: who was let go and is still asked waits for a holder that has as much, and is heard', async () => {
  const slot = lease({ node: 'b', holders: ['c'], kept: ['c', 'a'] })
  expect(await asked(slot, 6, speaks)).toEqual(is('000011'))
  expect(await asked(slot, 6, speaks, 6)).toEqual(is('000000'))
  expect(await asked(slot, 8, time => speaks(time < 3 || time > 6 ? time : 2))).toEqual(is('00000001'))
})

it('D10.tmpfs: memory of a slot without a Lease makes way after ten seconds, if there is no room for other memory', async () => {
  const clock = createFakeClock()
  const unwanted = createUnwanted(clock)
  const gone = lease({ incarnation: 'ffffffff' })
  const slot = lease({ node: 'b', holders: ['c'] })
  const world = snapshot({ slots: [slot] })
  const both = [gone, slot]
  expect(unwanted.makingWay(world, both)).toEqual([])
  await clock.advance(9_999)
  expect(unwanted.makingWay(world, both)).toEqual([])
  await clock.advance(1)
  expect(unwanted.makingWay(world, both)).toEqual([gone])
  // Its Lease is there again.
  expect(unwanted.due(snapshot({ slots: both }), both)).toEqual([])
  expect(unwanted.makingWay(world, both)).toEqual([])
})
