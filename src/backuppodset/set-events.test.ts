import { describe, expect, it } from 'vitest'
import type { EmptyStart } from '../slot/decide/actions.ts'
import { makeLease } from '../slot/testing/slots.ts'
import type { Action, Outcome } from './plan.ts'
import { eventsOf, failedActionOf, seriesOf } from './set-events.ts'
import { makePod } from './testing/snapshots.ts'

const done = (action: Action): Outcome => ({ type: 'done', action, pod: undefined })
const failed = (action: Action, error: unknown = new Error('forbidden')): Outcome => ({
  type: 'failed',
  action,
  error,
})
const notes = (...outcomes: Outcome[]) =>
  eventsOf(outcomes, 0).map(({ reason, note }) => `${reason}: ${note}`)

const p0 = makePod('p0', 'primary', { slot: 0, epoch: 1 })
const created: Extract<Action, { type: 'create' }> = {
  ...{ type: 'create', kind: 'primary', name: 'p1', strategy: 'random', role: undefined },
}
const written: Extract<Action, { type: 'writeSlot' }> = {
  ...{ type: 'writeSlot', lease: makeLease(p0), version: '1', restarts: 0, stateLost: false },
}
const service = (version: string | undefined): Action => ({
  ...{ type: 'applyService', service: 'web', serviceType: 'ClusterIP', ports: [], slot: undefined, version },
})

describe('an event of a set', () => {
  it.each<[EmptyStart, string]>([
    ['Gone', 'no node has its memory'],
    ['GivenUp', 'no node could restore its memory within checkpoint.giveUpAfterSeconds'],
    ['NoState', 'the operator has no state of it'],
    ['Refused', 'pods did not accept its state'],
  ])('says why a slot starts empty: %s', (startsEmpty, why) => {
    const role = { slot: 0, epoch: 2, replaces: undefined, startsEmpty }
    expect(notes(done({ ...created, role }))).toContain(`RestoredEmpty: slot 0 starts empty in p1: ${why}`)
  })

  it('MP-28: does not call the first primary of a clone a failover', () => {
    const cloneOf = { name: 'other-0', incarnation: '00000001', epoch: 3, generation: 7, node: 'a' }
    const role = { slot: 0, epoch: 2, replaces: undefined }
    const promote = (over: object): Action => ({
      ...{ type: 'promote', pod: p0, role, lease: makeLease(p0, over), version: '1' },
      ...{ origin: undefined, wake: false },
    })
    expect(notes(done(promote({ cloneOf })))).toEqual([
      'SlotCloned: p0 begins slot 0 with a copy of the memory of slot other-0',
    ])
    expect(notes(done(promote({})))).toEqual(['FailedOver: p0 took over slot 0'])
  })

  it('says whether a Service was created or changed', () => {
    expect(notes(done(service(undefined)))).toEqual(['ServicesChanged: Created Service web'])
    expect(notes(done(service('1')))).toEqual(['ServicesChanged: Changed Service web'])
  })
})

describe('the failure of a pass', () => {
  it('names the action in words, and counts the others', () => {
    const outcomes = [failed(written), failed({ type: 'delete', pod: p0, reason: 'Surplus' })]
    expect(failedActionOf(outcomes)).toBe(
      'could not write the Lease of slot 0: forbidden (other failures: 1)',
    )
    expect(failedActionOf([failed(service('1'))])).toBe('could not write Service web: forbidden')
  })

  it('is one series for all names and numbers', () => {
    const [first, second] = [0, 7].map(slot => {
      const lease = makeLease(makePod('p', 'primary', { slot, epoch: 1 }))
      const error = new Error(`bps-${String(slot).repeat(12)} is forbidden`)
      return eventsOf([failed({ ...written, lease }, error)], 0).map(seriesOf)
    })
    expect(first).toEqual(second)
  })
})
