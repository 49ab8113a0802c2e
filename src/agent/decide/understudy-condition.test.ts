import { expect, it } from 'vitest'
import { died, lease, nameOf, pod, snapshot, understudy } from '../testing/fake/snapshots.ts'
import { conditionToWrite } from './understudy-condition.ts'

it('D7.endpoints: a pod has its readiness gate before it is called, so that the kubelet publishes it at once then', () => {
  const h = understudy('h')
  const write = (one: typeof h, slots = [lease()]) => conditionToWrite(snapshot({ pods: [one], slots }), one)
  const gate = { status: 'False', reason: 'OffStage', message: 'it waits for a slot' }
  const first = write(h)
  expect(first).toMatchObject({
    type: 'backup.example.com/understudy',
    gate: { ...gate, ifVersion: h.resourceVersion },
  })
  // The operator may call a pod that was made for a slot as soon as its containers run. If its gates changed then, the kubelet would be late.
  const starts = { ...h, containers: h.containers.map(each => ({ ...each, running: false })) }
  expect(write({ ...starts, madeForSlot: true })).toMatchObject({ reason: 'NotHolding', gate })
  expect(write(starts)?.gate).toBeUndefined()
  // Its gate stays as it is, whatever it tells of the slots that it can take over.
  expect(write({ ...h, serving: { ...gate, record: {} } })?.gate).toBeUndefined()
  // An agent of the version before has written no gate.
  const told = { status: 'False', reason: first?.reason ?? '', message: first?.message ?? '' }
  expect(write({ ...h, understudyState: told })).toEqual(first)
  expect(write({ ...h, understudyState: told, serving: { ...gate, record: {} } })).toBeUndefined()
  // A called pod says by itself that it resumes; a dead one and a primary of its own have other words.
  expect(write(h, [lease({ holder: { name: 'h', uid: h.uid } })])).toBeUndefined()
  expect(write({ ...h, serving: died(nameOf()) })?.gate).toBeUndefined()
  expect(write(pod('p'))).toBeUndefined()
})
