import { expect, it } from 'vitest'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { ownNode } from './own-node.ts'

const asked = (extra: Record<string, readonly string[]> | undefined) =>
  ownNode(
    fakeApi({ request: async () => ({ status: 201, body: { status: { userInfo: extra && { extra } } } }) }),
    'n1',
    new AbortController().signal,
  )
const bound = (name: string) => ({
  'authentication.kubernetes.io/node-name': [name],
  'authentication.kubernetes.io/node-uid': ['uid-1'],
})

it('is the node that our token is bound to, and no other', async () => {
  expect(await asked(bound('n1'))).toEqual({ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'uid-1' })
  expect(await asked(bound('n2'))).toBeUndefined()
  expect(await asked({ 'authentication.kubernetes.io/node-name': ['n1'] })).toBeUndefined()
  expect(await asked(undefined)).toBeUndefined()
})
