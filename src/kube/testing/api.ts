/** A client before a scripted server. */
import { expect, onTestFinished } from 'vitest'
import { type ApiOptions, createApi } from '../api.ts'
import { KubeError } from '../errors.ts'
import { seededRandom } from '../random.ts'
import { type Received, startTestServer } from './http-server.ts'

export async function startApi(
  handle: (request: Received, nth: number) => unknown,
  options: { tls?: boolean } & Partial<ApiOptions> = {},
) {
  const server = await startTestServer(handle, options)
  const api = createApi({
    connection: server.connection,
    userAgent: 'kit-test/1',
    random: seededRandom(1),
    ...options,
  })
  onTestFinished(async () => {
    await api.close()
    await server.close()
  })
  return { server, api }
}

export const web = { namespace: 'default', name: 'web' }
export const pod = { metadata: { name: 'web', namespace: 'default', uid: 'u', resourceVersion: '7' } }

/** The error with which a call ends. */
export async function errorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(KubeError)
  return error as KubeError
}
