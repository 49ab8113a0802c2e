import { afterEach, expect, test } from 'vitest'
import { createApi } from './api.ts'
import { fenced } from './fence.ts'
import { leases, pods } from './resources.ts'
import { startTestServer, statusBody } from './testing/http-server.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

test('after the end of a term no write leaves the process, also none that is repeated; reads do', async () => {
  const seen: string[] = []
  let leads = true
  const server = await startTestServer(({ method, json }) => {
    seen.push(method)
    // The term ends while the request is in flight.
    leads = false
    if (method === 'GET') json(200, { metadata: {} })
    else json(503, statusBody(503, 'ServiceUnavailable', 'starting'), { 'retry-after': '0' })
  })
  const api = createApi({ connection: server.connection })
  cleanups.push(
    () => server.close(),
    () => api.close(),
  )
  const guarded = fenced(api, () => leads)
  const ref = { namespace: 'ns', name: 'a' }
  await expect(guarded.delete(pods, ref, { uid: 'u' })).rejects.toMatchObject({ code: 'Aborted' })
  expect(seen).toEqual(['DELETE'])
  for (const write of [
    () => guarded.create(pods, {}, { namespace: 'ns' }),
    () => guarded.patch(pods, ref, { type: 'merge', body: {} }),
    () => guarded.replace(leases, ref, {}),
    () => guarded.delete(pods, ref),
    () => guarded.request('POST', '/anything'),
  ])
    await expect(write()).rejects.toMatchObject({ code: 'Aborted', ambiguous: false })
  expect(seen).toEqual(['DELETE'])
  await guarded.get(pods, ref)
  expect(seen).toEqual(['DELETE', 'GET'])
})
