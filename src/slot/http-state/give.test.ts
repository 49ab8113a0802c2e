import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { expect, it } from 'vitest'
import { systemClock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { makePull, makeState } from '../testing/pulled.ts'
import { giveState } from './give.ts'

const pod = (uid: string, podIP: string): Pod => ({
  metadata: { name: 'p', namespace: 'default', uid, resourceVersion: '1' },
  status: {
    podIP,
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [
      {
        ...{ name: 'app', image: '', imageID: '', ready: true, restartCount: 0 },
        state: { running: {} },
      },
    ],
  },
})

it('a state goes to the address that the API server knows now, and to no pod that only has the name', async () => {
  let pushes = 0
  const server = createServer((request, response) => {
    pushes += 1
    request.resume().on('end', () => response.writeHead(204).end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const dispatcher = new Agent()
  const pods = createStore<Pod>()
  // No server listens at the address in the cache.
  pods.upsert(pod('u', '127.0.0.2'))
  const give = (read: () => Promise<Pod | undefined>) =>
    giveState(
      {
        pod: { namespace: 'default', name: 'p', uid: 'u' },
        pull: makePull({ port, timeoutMs: 2_000, restoreMs: 3_000 }),
        state: makeState({ bytes: Buffer.from('x') }),
        signal: new AbortController().signal,
      },
      { pods, clock: systemClock, dispatcher, read },
    )
  try {
    expect(await give(async () => undefined)).toMatchObject({ type: 'gone' })
    expect(await give(async () => pod('another', '127.0.0.1'))).toMatchObject({ type: 'gone' })
    expect(pushes).toBe(0)
    expect(await give(async () => pod('u', '127.0.0.1'))).toMatchObject({ type: 'taken', ip: '127.0.0.1' })
    expect(pushes).toBe(1)
  } finally {
    await dispatcher.close()
    server.close()
  }
})
