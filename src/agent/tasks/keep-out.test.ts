import { expect, it, vi } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import { pidOf } from '../testing/fake/driver.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, called, useTwoNodes } from '../testing/fake/two-nodes.ts'

let cluster: FakeCluster
let a: FakeMemory
let b: FakeMemory
const { start, serving, untilFrozen } = useTwoNodes(made => {
  ;({ cluster, a, b } = made)
})

/** Another slot with the same heir. */
const other: SlotLease = {
  ...atFirst(),
  ...{ name: 'web-1', holder: { name: 'q', uid: 'uid-q' }, ip: '10.0.0.7' },
}

it('D8.strangers: memory listens only once clients of the other slots of which its pod was the heir are refused', async () => {
  const keptOut = () => b.keptOut.get(pidOf('uid-h'))
  cluster.setLease(other)
  const atRestore: unknown[] = []
  b.beforeRestore = () => void atRestore.push(keptOut())
  await start('a', a)
  await start('b', b)
  await untilFrozen('one')
  expect(keptOut()).toEqual(['10.0.0.7'])
  // The node of that slot's primary may not hear of its new heir.
  cluster.setLease({ ...other, heir: { name: 'g', uid: 'uid-g', ip: '10.0.0.8' } })
  a.running.delete('uid-p')
  cluster.setLease(called())
  await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
  expect(keptOut()).toEqual(['10.0.0.7'])
  expect(new Set(atRestore.map(String))).toEqual(new Set(['10.0.0.7']))
})

it('D8.strangers: an agent that knows no other slots lifts what an earlier one may have refused', async () => {
  b.keptOut.set(pidOf('uid-h'), ['10.0.0.9'])
  await start('a', a)
  await start('b', b)
  await untilFrozen('one')
  expect([...b.keptOut.values()]).toEqual([[]])
})

it('a sentinel that cannot refuse them does not keep a slot without its memory', async () => {
  cluster.setLease(other)
  b.refusesRedirects = true
  await start('a', a)
  await start('b', b)
  await untilFrozen('one')
})
