import { expect, it } from 'vitest'
import { forged } from '../../test/support/forged.ts'
import type { Lease } from '../kube/resources.ts'
import { parseSlotLease, slotAnnotations, slotLeaseBody } from './slot-lease.ts'
import { formatPolicy, longestPolicy, parsePolicy, type SlotPolicy } from './slot-policy.ts'

const policy: SlotPolicy = {
  mode: 'Frozen',
  intervalMs: 1_000,
  maxFreezePercent: 2,
  containers: ['app', 'side'],
  keep: 2,
  disk: true,
  volumeBytes: 0,
  paused: false,
  restoreHash: '0123456789abcdef',
}
const edited = (over: object) => JSON.stringify({ ...JSON.parse(formatPolicy(policy)), ...over })

it('D7.policy: a policy says what was written into it', () => {
  const whole = {
    ...policy,
    mode: 'Staged' as const,
    paused: true,
    liveness: { periodMs: 50, failureThreshold: 1 },
  }
  for (const each of [policy, whole]) expect(parsePolicy(formatPolicy(each))).toEqual(each)
  expect(parsePolicy(formatPolicy(policy))).not.toHaveProperty('liveness')
})

it('D7.policy: a later version may add fields to this form, and nobody has to know them', () => {
  expect(parsePolicy(edited({ voters: 3 }))).toEqual(policy)
})

it.each([
  ['nothing', undefined],
  ['no JSON', '{"v":1,'],
  ['no object', '[1]'],
  ['another version', edited({ v: 2 })],
  ['no version', edited({ v: undefined })],
  ['a mode that keeps no memory', edited({ mode: 'Warm' })],
  ['an interval that is too short', edited({ intervalMs: 199 })],
  ['an interval that is no whole number', edited({ intervalMs: 1_000.5 })],
  ['an interval that is text', edited({ intervalMs: '1000' })],
  ['more freeze than allowed', edited({ maxFreezePercent: 51 })],
  ['no container', edited({ containers: [] })],
  ['a container with a name that none can have', edited({ containers: ['../app'] })],
  ['no generations', edited({ keep: 0 })],
  ['disk as text', edited({ disk: 'None' })],
  ['a negative size', edited({ volumeBytes: -1 })],
  ['liveness of which only half can be read', edited({ liveness: { periodMs: 50 } })],
  ['no word on pausing', edited({ paused: null })],
  ['a hash that is none', edited({ restoreHash: 'zz' })],
  ['more than anybody parses', edited({ more: 'x'.repeat(longestPolicy) })],
])('D7.policy: %s is no policy', (_, text) => {
  expect(parsePolicy(text)).toBeUndefined()
})

const lease = {
  ...{
    namespace: 'default',
    name: 'web-0',
    incarnation: '0123abcd',
    group: 'web',
    holder: { name: 'p', uid: 'u' },
    epoch: 3,
  },
  ...{ ip: undefined, node: 'a', heir: undefined, holders: ['b'] },
}
const said = (metadata: object) => {
  const body = slotLeaseBody({ ...lease, policy })
  return parseSlotLease(forged<Lease>({ ...body, metadata: { ...body.metadata, ...metadata } }))
}

it('D7.policy: a Lease whose policy cannot be read is a Lease all the same', () => {
  expect(said({})?.policy).toEqual(policy)
  const { annotations } = slotLeaseBody({ ...lease, policy }).metadata
  const torn = said({ annotations: { ...annotations, [slotAnnotations.policy]: edited({ v: 2 }) } })
  expect(torn).toMatchObject({ incarnation: '0123abcd', holders: ['b'] })
  expect(torn).not.toHaveProperty('policy')
  // A merge patch without a policy leaves the policy of the Lease as it is.
  expect(slotLeaseBody(lease).metadata.annotations).not.toHaveProperty([slotAnnotations.policy])
})

it('D7.owner: a Lease names its owner', () => {
  const ref = (uid: string, controller?: boolean) => ({
    apiVersion: 'v1',
    kind: 'K',
    name: 'n',
    uid,
    controller,
  })
  expect(said({ ownerReferences: [ref('other'), ref('set', true)] })?.owner).toBe('set')
  expect(said({ ownerReferences: [ref('set')] })?.owner).toBe('set')
  expect(said({})).not.toHaveProperty('owner')
})
