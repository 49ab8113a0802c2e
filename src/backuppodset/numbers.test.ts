import { expect, it } from 'vitest'
import { parseSet } from '../api/parse.ts'
import { seededRandom } from '../kube/random.ts'
import { podNamer } from './decide/name.ts'
import { lastNumber } from './numbers.ts'
import { makePod, makeSnapshot } from './testing/snapshots.ts'

it('MP-05: the next number follows the highest one that any pod, slot or status names', () => {
  const slots = [{ slot: 0, pod: 'web-4', epoch: 1, ready: true }]
  expect(lastNumber('web', [])).toBe(-1)
  expect(lastNumber('web', ['web-2', 'web-1', 'web-x', 'web-api-9', 'other-7', 'web-03'])).toBe(2)
  expect(lastNumber('web', ['web-2'], { slots })).toBe(4)
})

it('MP-05: two operators with the same cache name the same pod', () => {
  const snapshot = makeSnapshot({ name: 'web', isNumbered: true }, [makePod('web-3', 'primary')], {
    lastNumber: 3,
  })
  const [one, other] = [podNamer(snapshot, seededRandom(1)), podNamer(snapshot, seededRandom(2))]
  expect([one(), one(), other()]).toEqual(['web-4', 'web-5', 'web-4'])
})

it('only pods of the set of a MigratingPod are numbered', () => {
  const owned = (owner: object) =>
    parseSet({
      metadata: {
        ...{ name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1' },
        ownerReferences: [
          {
            apiVersion: 'backup.example.com/v1alpha1',
            kind: 'MigratingPod',
            name: 'web',
            uid: 'm',
            ...owner,
          },
        ],
      },
      spec: { template: { spec: { containers: [{ name: 'app', image: 'app' }] } } },
    })
  expect(owned({ controller: true })).toMatchObject({ ok: true, set: { isNumbered: true } })
  for (const other of [{}, { controller: true, kind: 'Other' }, { controller: true, apiVersion: 'x/v1' }])
    expect(owned(other)).not.toMatchObject({ set: { isNumbered: true } })
})
