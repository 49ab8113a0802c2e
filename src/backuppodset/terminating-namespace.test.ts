import { expect, it } from 'vitest'
import { KubeError } from '../kube/errors.ts'
import { fakeApi, makeObject } from '../kube/testing/fake-api.ts'
import type { Outcome } from './plan.ts'
import { createTerminatingNamespace } from './terminating-namespace.ts'
import { makePod } from './testing/snapshots.ts'

const { signal } = new AbortController()
const failed = (error: unknown): Outcome => ({
  ...{ type: 'failed', error },
  action: { type: 'delete', pod: makePod('p', 'primary'), reason: 'Surplus' },
})
const refused = (reason: string) =>
  failed(new KubeError('Forbidden', 'no', { details: { causes: [{ reason, message: '', field: '' }] } }))

it('R31: a set whose namespace ends is known by the word of the API server', async () => {
  let deletionTimestamp: string | undefined
  const get = async () =>
    makeObject({ metadata: { name: 'shop', ...(deletionTimestamp && { deletionTimestamp }) } })
  const terminating = createTerminatingNamespace(fakeApi({ get }), 'shop')
  expect([await terminating.ask(signal), terminating.isKnown()]).toEqual([false, false])
  deletionTimestamp = '2030-01-01T00:00:00Z'
  expect([await terminating.ask(signal), terminating.isKnown()]).toEqual([true, true])
})

it('R31: it is known by creations that are refused for it, and by no other refusal', () => {
  const terminating = createTerminatingNamespace(
    { get: async () => Promise.reject(new Error('not asked')) },
    'shop',
  )
  terminating.note([refused('FieldManagerConflict'), failed(new Error('quota'))])
  expect(terminating.isKnown()).toBe(false)
  terminating.note([refused('NamespaceTerminating')])
  expect(terminating.isKnown()).toBe(true)
})

it('R31: without an answer a failover goes on', async () => {
  const terminating = createTerminatingNamespace(
    { get: async () => Promise.reject(new KubeError('Unavailable', 'away')) },
    'shop',
  )
  expect(await terminating.ask(signal)).toBe(false)
})
