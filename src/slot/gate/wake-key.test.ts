import { expect, it } from 'vitest'
import { KubeError } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import { systemRandom } from '../../kube/random.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { loadWakeKeys } from './wake-key.ts'

const { signal } = new AbortController()
const base64 = (length: number, fill: number) => Buffer.alloc(length, fill).toString('base64')

/** An API server that has one Secret, or none yet. */
function serverWith(data?: Record<string, string>) {
  let stored: KubeObject | undefined = data && makeObject({ metadata: { name: 'understudy-wake-key' }, data })
  const api = fakeApi({
    get: async () => {
      if (stored === undefined) throw new KubeError('NotFound', 'no such Secret')
      return stored
    },
    create: async (_, body) => {
      stored = makeObject(body)
      return stored
    },
  })
  return { load: () => loadWakeKeys(api, 'understudy-system', systemRandom, signal) }
}

it('a key is made once, and found by every later operator', async () => {
  const { load } = serverWith()
  const [key, ...others] = await load()
  expect([key.length, others]).toEqual([32, []])
  expect(await load()).toEqual([key])
})

it('D10.wake-key: the key of before is one more, which is not the first', async () => {
  const { load } = serverWith({ key: base64(32, 2), previous: base64(32, 1) })
  expect(await load()).toEqual([Buffer.alloc(32, 2), Buffer.alloc(32, 1)])
  expect(await serverWith({ key: base64(32, 2), previous: '' }).load()).toHaveLength(1)
})

it.each([
  ['key', { key: base64(31, 1) }],
  ['key', {}],
  ['previous', { key: base64(32, 1), previous: base64(8, 1) }],
])('what is no key under "%s" is said, with its cure', async (name, data) => {
  await expect(serverWith(data).load()).rejects.toThrow(`must hold 32 bytes under "${name}"; `)
})
