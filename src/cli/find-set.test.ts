import { expect, test } from 'vitest'
import { KubeError } from '../kube/errors.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import { distance, findSet, suggestion } from './find-set.ts'
import { migratingPod } from './testing/moves.ts'
import { makeSession } from './testing/session.ts'

const sets = [
  { namespace: 'shop', name: 'web' },
  { namespace: 'shop', name: 'redis' },
  { namespace: 'bank', name: 'ledger' },
]

test.each([
  ['wbe', 'shop', 'did you mean web?'],
  ['rediss', 'shop', 'did you mean redis?'],
  ['ledger', 'shop', 'use -n bank: it is in another namespace'],
  ['something-else', 'shop', 'choose one of: web, redis'],
  ['web', 'empty', 'use -n shop: it is in another namespace'],
  ['other', 'empty', 'list all sets with `kubectl understudy status -A`: this namespace has none'],
])('who asks for %s in %s is told: %s', (name, namespace, text) => {
  expect(suggestion(name, namespace, sets)).toBe(text)
})

test('where there are no sets at all it says where to begin', () => {
  expect(suggestion('web', 'shop', [])).toContain('samples/')
})

test('distance counts letters that differ', () => {
  expect([distance('', 'abc'), distance('web', 'web'), distance('kitten', 'sitting')]).toEqual([3, 0, 3])
})

test('D18.status: a MigratingPod whose set could not be made is told with its reason', async () => {
  const api = fakeApi({
    get: async ({ plural }) => {
      if (plural === 'migratingpods') return migratingPod('Invalid', 'SetRefused')
      throw new KubeError('NotFound', 'no', { details: { name: 'web' } })
    },
  })
  await expect(findSet(makeSession({ api }), 'web')).rejects.toMatchObject({
    message: 'the MigratingPod web has no BackupPodSet: Invalid: SetRefused: the words',
    advice: expect.stringContaining('change the MigratingPod'),
  })
})
