import { expect, it, vi } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog as log } from '../kube/log.ts'
import { seededRandom } from '../kube/random.ts'
import type { Secret } from '../kube/resources.ts'
import { fakeApi, makeObject } from '../kube/testing/fake-api.ts'
import { keepGenerationsKey } from './generations-key.ts'

function server() {
  const state = { exists: false, broken: false, secrets: [] as Secret[] }
  const api = fakeApi({
    create: async (_, body) => {
      if (state.broken) throw new KubeError('Unavailable', 'no etcd')
      if (state.exists) throw new KubeError('AlreadyExists', 'it is there')
      state.exists = true
      const secret: Secret = makeObject(body)
      state.secrets.push(secret)
      return secret
    },
  })
  return { state, api }
}

const keyOf = (secret: Secret | undefined) => secret?.data?.['key'] ?? ''

it('makes the key when a set keeps memory, once, and again when somebody has deleted it', async () => {
  const { state, api } = server()
  const clock = createFakeClock()
  const stop = new AbortController()
  let wanted = false
  const options = { api, namespace: 'agents', wanted: () => wanted, clock, random: seededRandom(1), log }
  const running = keepGenerationsKey(options, stop.signal)
  const after = async (ms: number) => {
    await clock.advance(ms)
    await vi.waitFor(() => Promise.resolve())
  }
  await after(20_000)
  expect(state.secrets).toEqual([])
  wanted = true
  await after(5_000)
  expect(state.secrets.map(({ metadata }) => metadata.name)).toEqual(['understudy-generations-key'])
  expect(Buffer.from(keyOf(state.secrets[0]), 'base64')).toHaveLength(32)
  await after(300_000)
  expect(state.secrets).toHaveLength(1)
  state.broken = true
  state.exists = false
  await after(300_000)
  state.broken = false
  await after(60_000)
  expect(state.secrets).toHaveLength(2)
  expect(keyOf(state.secrets[1])).not.toBe(keyOf(state.secrets[0]))
  stop.abort(new Error('over'))
  await running
})
