import { expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import type { PersistentVolumeClaim } from '../../kube/resources.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { makeSet } from '../testing/snapshots.ts'
import { createClaimReader } from './claim-reader.ts'

const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
const set = makeSet({ template: { spec: { containers: [], volumes } } })
const claim = (mode: string): PersistentVolumeClaim => makeObject({ spec: { accessModes: [mode] } })
const shared = claim('ReadWriteMany')

function setup() {
  const clock = createFakeClock()
  const news: null[] = []
  const asked: string[] = []
  const primaries: { readonly spec: { readonly containers: []; readonly volumes: typeof volumes } }[] = []
  let answer: () => Promise<PersistentVolumeClaim> = async () => shared
  const api = fakeApi({
    get: (_, { namespace, name }) => {
      asked.push(`${namespace}/${name}`)
      return answer()
    },
  })
  const reader = createClaimReader({
    api,
    clock,
    primaries: () => primaries,
    changed: () => news.push(null),
  })
  const { signal } = new AbortController()
  return {
    ...{ clock, news, asked, reader, primaries },
    look: (of = set) => reader.look(of, signal),
    state: () => reader.of(set)[0]?.state,
    answers: (next: () => Promise<PersistentVolumeClaim>) => {
      answer = next
    },
  }
}
const fails = (code: 'NotFound' | 'Unavailable' | 'Forbidden') => async () => {
  throw new KubeError(code, code)
}

it('the first look waits for the answer; those after it do not ask again for a while', async () => {
  const { clock, asked, look, state } = setup()
  expect(state()).toEqual({ type: 'unread', why: 'no answer yet' })
  await look()
  expect(state()).toEqual({ type: 'there', accessModes: ['ReadWriteMany'] })
  await clock.advance(14_000)
  await look()
  expect(asked).toEqual(['default/data'])
  await clock.advance(1_000)
  await look()
  expect(asked).toHaveLength(2)
})

it('a template without claims asks for none', async () => {
  const { asked, look } = setup()
  await look(makeSet())
  expect(asked).toEqual([])
})

it('no pass waits for long for an answer that does not come, and the set is looked at again when it does', async () => {
  const { clock, news, look, state, answers } = setup()
  const late = Promise.withResolvers<PersistentVolumeClaim>()
  answers(() => late.promise)
  const looked = look()
  await clock.advance(1_000)
  await looked
  expect(state()?.type).toBe('unread')
  late.resolve(shared)
  await expect.poll(() => news).toHaveLength(1)
  expect(state()?.type).toBe('there')
})

it('one that is missing is asked for again soon, and told when it is there', async () => {
  const { clock, news, look, reader, state, answers } = setup()
  answers(fails('NotFound'))
  await look()
  expect(state()).toEqual({ type: 'missing' })
  expect(reader.againAfterMs(set)).toBe(3_000)
  answers(async () => shared)
  await clock.advance(3_000)
  await look()
  await expect.poll(() => state()?.type).toBe('there')
  expect(reader.againAfterMs(set)).toBeUndefined()
  expect(news).toHaveLength(2)
})

it('what is known stays known while the server does not answer; a claim that was made anew is another one', async () => {
  const { clock, news, look, state, answers } = setup()
  await look()
  answers(fails('Unavailable'))
  await clock.advance(20_000)
  await look()
  await clock.advance(0)
  expect(state()).toEqual({ type: 'there', accessModes: ['ReadWriteMany'] })
  answers(async () => claim('ReadWriteOnce'))
  await clock.advance(20_000)
  await look()
  await expect.poll(state).toEqual({ type: 'there', accessModes: ['ReadWriteOnce'] })
  expect(news).toHaveLength(2)
})

it('a right that is missing is told', async () => {
  const { look, state, answers } = setup()
  answers(fails('Forbidden'))
  await look()
  expect(state()).toEqual({ type: 'unread', why: 'Forbidden' })
})

it('D7.kept: claims are those of the pods that run; what only the template has counts for the pods to come', async () => {
  const { reader, primaries, look } = setup()
  const unused = () => reader.of(set).map(({ name, unused: is }) => [name, is])
  await look()
  expect(unused()).toEqual([['data', undefined]])
  const own = { name: 'own', persistentVolumeClaim: { claimName: 'own' } }
  primaries.push({ spec: { containers: [], volumes: [own] } })
  await look()
  expect(unused()).toEqual([
    ['own', undefined],
    ['data', true],
  ])
  primaries.push({ spec: { containers: [], volumes } })
  expect(unused()).toEqual([
    ['own', undefined],
    ['data', undefined],
  ])
})
