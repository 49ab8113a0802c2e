import { expect, it } from 'vitest'
import { KubeError } from '../kube/errors.ts'
import { fakeApi, makeObject } from '../kube/testing/fake-api.ts'
import type { Outcome } from './plan.ts'
import { createTerminatingNamespaces } from './terminating-namespaces.ts'
import { makePod } from './testing/snapshots.ts'

const set = { uid: 'u', namespace: 'shop' }
const { signal } = new AbortController()
const failed = (error: unknown): Outcome => ({
  ...{ type: 'failed', error },
  action: { type: 'delete', pod: makePod('p', 'primary'), reason: 'Surplus' },
})
const refused = (reason: string) =>
  failed(new KubeError('Forbidden', 'no', { details: { causes: [{ reason, message: '', field: '' }] } }))

it('R31: a set whose namespace ends is known by the word of the API server, and until it is gone', async () => {
  let deletionTimestamp: string | undefined
  const get = async () =>
    makeObject({ metadata: { name: 'shop', ...(deletionTimestamp && { deletionTimestamp }) } })
  const terminating = createTerminatingNamespaces(fakeApi({ get }))
  expect([await terminating.ask(set, signal), terminating.has('u')]).toEqual([false, false])
  deletionTimestamp = '2030-01-01T00:00:00Z'
  expect([await terminating.ask(set, signal), terminating.has('u')]).toEqual([true, true])
  expect(terminating.has('namesake')).toBe(false)
  terminating.forget('u')
  expect(terminating.has('u')).toBe(false)
})

it('R31: it is known by creations that are refused for it, and by no other refusal', () => {
  const terminating = createTerminatingNamespaces({ get: async () => Promise.reject(new Error('not asked')) })
  terminating.note('u', [refused('FieldManagerConflict'), failed(new Error('quota'))])
  expect(terminating.has('u')).toBe(false)
  terminating.note('u', [refused('NamespaceTerminating')])
  expect(terminating.has('u')).toBe(true)
})

it('R31: without an answer a failover goes on', async () => {
  const terminating = createTerminatingNamespaces({
    get: async () => Promise.reject(new KubeError('Unavailable', 'away')),
  })
  expect(await terminating.ask(set, signal)).toBe(false)
})
