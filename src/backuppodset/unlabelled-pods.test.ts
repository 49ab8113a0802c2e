import { expect, it } from 'vitest'
import { labels } from '../api/labels.ts'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog } from '../kube/log.ts'
import type { Pod } from '../kube/resources.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import { createUnlabelledPods } from './unlabelled-pods.ts'

const owner = {
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', name: 'bps', uid: 'set' },
  controller: true,
}
const pod = (over: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: {
    ...{ name: 'p', namespace: 'default', uid: 'u', resourceVersion: '1' },
    labels: { [labels.set]: 'bps', [labels.type]: 'primary' },
    ownerReferences: [owner],
    ...over,
  },
})
const without = pod({ labels: { [labels.type]: 'primary' }, resourceVersion: '2' })
const gone = (object: Pod) => ({ type: 'deleted', object, old: object, initial: false }) as const

function setup() {
  const clock = createFakeClock()
  const asked: string[] = []
  const news: string[] = []
  const deleted = new Set<string>()
  let answer: () => Promise<Pod> = async () => without
  const api = fakeApi({
    get: (_, { name }) => {
      asked.push(name)
      return answer()
    },
  })
  const unlabelled = createUnlabelledPods({
    ...{ api, clock, log: silentLog },
    isDeleted: uid => deleted.has(uid),
    changed: key => news.push(key),
  })
  const term = new AbortController()
  return {
    ...{ clock, asked, news, deleted, unlabelled, term },
    answers: (next: () => Promise<Pod>) => {
      answer = next
    },
    there: () => unlabelled.of('default/bps').map(({ metadata }) => metadata.name),
  }
}

it('a pod that left and is still there is told, with what it is now', async () => {
  const { unlabelled, news, there, term } = setup()
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod()))
  await expect.poll(there).toEqual(['p'])
  expect(news).toEqual(['default/bps'])
  expect(unlabelled.of('default/bps')).toEqual([without])
  expect(unlabelled.of('default/other')).toEqual([])
  unlabelled.forget('u')
  expect(there()).toEqual([])
})

it('who does not lead asks nothing, and asks once it leads', async () => {
  const { unlabelled, asked, there, term } = setup()
  unlabelled.note(gone(pod()))
  await Promise.resolve()
  expect(asked).toEqual([])
  unlabelled.begin(term.signal)
  await expect.poll(there).toEqual(['p'])
})

it.each<[string, () => Promise<Pod>]>([
  ['that is gone', () => Promise.reject(new KubeError('NotFound', 'gone'))],
  ['of whose name there is another one', async () => ({ metadata: { ...without.metadata, uid: 'v' } })],
  ['that is back', async () => pod()],
  [
    'that goes by now',
    async () => ({ metadata: { ...without.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' } }),
  ],
])('one %s is forgotten', async (_, answer) => {
  const { unlabelled, asked, there, answers, news, term } = setup()
  answers(answer)
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod()))
  await expect.poll(() => asked).toEqual(['p'])
  unlabelled.lookAgain('u')
  await new Promise(resolve => setImmediate(resolve))
  unlabelled.lookAgain('u')
  expect([asked.length, there(), news]).toEqual([1, [], []])
})

it('nobody is asked about pods that were deleted, by us or by others, and that are none of ours', async () => {
  const { unlabelled, asked, deleted, term } = setup()
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod({ deletionTimestamp: '2030-01-01T00:00:00Z' })))
  unlabelled.note(gone(pod({ ownerReferences: [] })))
  unlabelled.note(gone(pod({ ownerReferences: [{ ...owner, apiVersion: 'apps/v1', kind: 'ReplicaSet' }] })))
  deleted.add('u')
  unlabelled.note(gone(pod()))
  await new Promise(resolve => setImmediate(resolve))
  expect(asked).toEqual([])
})

it('a server that does not answer is asked again, until the end of the term', async () => {
  const { clock, unlabelled, asked, there, answers, term } = setup()
  answers(() => Promise.reject(new KubeError('Unavailable', 'busy')))
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod()))
  await expect.poll(() => asked.length).toBe(1)
  answers(async () => without)
  await clock.advance(1_000)
  await expect.poll(there).toEqual(['p'])
  term.abort()
  unlabelled.lookAgain('u')
  expect(asked).toHaveLength(2)
})

it('one that was not let go because it had changed is read again', async () => {
  const { unlabelled, asked, answers, term } = setup()
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod()))
  await expect.poll(() => unlabelled.of('default/bps')).toEqual([without])
  const later = { metadata: { ...without.metadata, resourceVersion: '3' } }
  answers(async () => later)
  await new Promise(resolve => setImmediate(resolve))
  unlabelled.lookAgain('u')
  await expect.poll(() => unlabelled.of('default/bps')).toEqual([later])
  expect(asked).toHaveLength(2)
})

it('one that comes back is the cache’s again', async () => {
  const { unlabelled, there, term } = setup()
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod()))
  await expect.poll(there).toEqual(['p'])
  unlabelled.note({ type: 'added', object: pod(), initial: false })
  expect(there()).toEqual([])
})

it('R31: one that names the set among its owners no more is forgotten', async () => {
  const { unlabelled, asked, there, term, answers, news } = setup()
  answers(async () => pod({ labels: {}, ownerReferences: [], resourceVersion: '2' }))
  unlabelled.begin(term.signal)
  unlabelled.note(gone(pod()))
  await expect.poll(() => asked).toEqual(['p'])
  await new Promise(resolve => setImmediate(resolve))
  expect([there(), news]).toEqual([[], []])
  unlabelled.lookAgain('u')
  expect(asked).toEqual(['p'])
})
