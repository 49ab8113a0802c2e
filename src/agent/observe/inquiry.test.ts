import { expect, it } from 'vitest'
import { labels } from '../../api/labels.ts'
import { slotLeaseBody } from '../../api/slot-lease.ts'
import { KubeError } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { lease } from '../testing/fake/snapshots.ts'
import { createInquiry } from './inquiry.ts'

const signal = new AbortController().signal

function stand(objects: ReadonlyMap<string, KubeObject | Error>, onPause: () => void = () => undefined) {
  const api = fakeApi({
    async get(_, { namespace, name }) {
      const found = objects.get(`${namespace}/${name}`)
      if (found === undefined) throw new KubeError('NotFound', name)
      if (found instanceof Error) throw found
      return found
    },
    list: async () => ({
      items: [...objects.values()].flatMap(each => (each instanceof Error ? [] : [each])),
      metadata: { resourceVersion: '1' },
    }),
  })
  return createInquiry({
    ...{ api, node: 'a', election: { namespace: 'system', name: 'operator' } },
    clock: { sleep: async () => onPause() },
  })
}

const podOf = (over: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { namespace: 'default', name: 'p', uid: 'uid-p', resourceVersion: '1', ...over },
})

it('reads the Lease of a slot, whatever caches say; none is not a failure, and no answer is one', async () => {
  const body = makeObject(slotLeaseBody(lease({ epoch: 7 })))
  expect(await stand(new Map([['default/web-0', body]])).lease(lease(), signal)).toMatchObject({ epoch: 7 })
  expect(await stand(new Map()).lease(lease(), signal)).toBeUndefined()
  const away = stand(new Map([['default/web-0', new KubeError('Unavailable', 'away')]]))
  await expect(away.lease(lease(), signal)).rejects.toMatchObject({ code: 'Unavailable' })
})

it('a Lease without the label by which admission guards the Leases of slots is no Lease of a slot', async () => {
  const { metadata, spec } = slotLeaseBody(lease())
  const forged = makeObject({ metadata: { ...metadata, labels: {} }, spec })
  expect(await stand(new Map([['default/web-0', forged]])).lease(lease(), signal)).toBeUndefined()
})

it('a pod is there while one of that uid stays', async () => {
  const there = (pod: Pod | undefined) =>
    stand(new Map(pod && [['default/p', pod]])).isThere(
      { namespace: 'default', name: 'p', uid: 'uid-p' },
      signal,
    )
  expect(await there(podOf())).toBe(true)
  expect(await there(podOf({ uid: 'uid-of-a-namesake' }))).toBe(false)
  expect(await there(podOf({ deletionTimestamp: '2030-01-01T00:00:00Z' }))).toBe(false)
  expect(await there(undefined)).toBe(false)
  const node = stand(new Map([['default/p', podOf()]]))
  expect([await node.presenceOf('uid-p', signal), await node.presenceOf('uid-q', signal)]).toEqual([
    'Released',
    'Gone',
  ])
  const labelled = podOf({ labels: { [labels.set]: 'web' } })
  expect(await stand(new Map([['default/p', labelled]])).presenceOf('uid-p', signal)).toBe('Here')
  const finished = makeObject({ ...podOf(), status: { phase: 'Succeeded' } })
  expect(await stand(new Map([['default/p', finished]])).presenceOf('uid-p', signal)).toBe('Gone')
})

it('a pod could take a slot while it stays and has had no other one', async () => {
  const could = (pod: Pod | undefined) =>
    stand(new Map(pod && [['default/p', pod]])).couldTake(
      { namespace: 'default', name: 'p', uid: 'uid-p' },
      'web-1',
      signal,
    )
  const of = (slot?: string) =>
    podOf({ labels: { [labels.set]: 'web', ...(slot !== undefined && { [labels.slot]: slot }) } })
  expect(await could(of())).toBe(true)
  expect(await could(of('1'))).toBe(true)
  expect(await could(of('0'))).toBe(false)
  expect(await could(podOf({ uid: 'uid-of-a-namesake' }))).toBe(false)
  expect(await could(podOf({ deletionTimestamp: '2030-01-01T00:00:00Z' }))).toBe(false)
  expect(await could(undefined)).toBe(false)
})

it('an operator is at work when its Lease is renewed while one looks', async () => {
  const held = (holderIdentity: string, renewTime: string): Lease => ({
    metadata: { namespace: 'system', name: 'operator', uid: 'l', resourceVersion: '1' },
    spec: { holderIdentity, renewTime },
  })
  const leads = (before: Lease, after: Lease) => {
    const objects = new Map([['system/operator', before]])
    return stand(objects, () => objects.set('system/operator', after)).operatorLeads(signal)
  }
  expect(await leads(held('one', '1'), held('one', '2'))).toBe(true)
  expect(await leads(held('one', '1'), held('two', '2'))).toBe(true)
  expect(await leads(held('one', '1'), held('one', '1'))).toBe(false)
  expect(await leads(held('', '1'), held('', '1'))).toBe(false)
  expect(await leads(held('one', '1'), held('', '2'))).toBe(false)
  expect(await stand(new Map()).operatorLeads(signal)).toBe(false)
})
