import { expect, it, vi } from 'vitest'
import type { Api } from '../kube/api.ts'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog as log } from '../kube/log.ts'
import { seededRandom } from '../kube/random.ts'
import { keepGenerationsKey } from './generations-key.ts'

interface Body {
  readonly metadata: { readonly name: string }
  readonly data: { readonly key: string }
}

function server() {
  const state = { exists: false, broken: false, bodies: [] as Body[] }
  const create = async (_: unknown, body: unknown) => {
    if (state.broken) throw new KubeError('Unavailable', 'no etcd')
    if (state.exists) throw new KubeError('AlreadyExists', 'it is there')
    state.exists = true
    state.bodies.push(body as Body)
    return body
  }
  return { state, api: { create } as unknown as Pick<Api, 'create'> }
}

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
  expect(state.bodies).toEqual([])
  wanted = true
  await after(5_000)
  expect(state.bodies.map(({ metadata }) => metadata.name)).toEqual(['understudy-generations-key'])
  expect(Buffer.from(state.bodies[0]?.data.key ?? '', 'base64')).toHaveLength(32)
  await after(300_000)
  expect(state.bodies).toHaveLength(1)
  state.broken = true
  state.exists = false
  await after(300_000)
  state.broken = false
  await after(60_000)
  expect(state.bodies).toHaveLength(2)
  expect(state.bodies[1]?.data.key).not.toBe(state.bodies[0]?.data.key)
  stop.abort(new Error('over'))
  await running
})
