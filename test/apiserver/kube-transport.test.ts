// Long because it is a list of calls with the answers of a real API server.
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Api, createApi } from '../../src/kube/api.ts'
import { type Connection, loadConnection } from '../../src/kube/connection.ts'
import { KubeError } from '../../src/kube/errors.ts'
import { listAll } from '../../src/kube/list-all.ts'
import { configMaps, leases, namespaces, nodes, pods } from '../../src/kube/resources.ts'
import { collect } from '../../src/kube/testing/collect.ts'
import { on, startFaultProxy } from './fault-proxy.ts'
import { adminKubeconfig } from './lib/plane.ts'

let connection: Connection
let api: Api
let namespace: string

beforeAll(async () => {
  connection = await loadConnection({ kubeconfig: adminKubeconfig() })
  api = createApi({ connection, userAgent: 'kit-test/1' })
  const made = await api.create(namespaces, { metadata: { generateName: 'kit-transport-' } })
  namespace = made.metadata.name
})
afterAll(async () => {
  await api.delete(namespaces, { name: namespace })
  await api.close()
})

const podBody = (name: string, fields: { labels?: Record<string, string> } = {}) => ({
  metadata: { name, namespace, ...fields },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'app', image: 'registry.invalid/app' }] },
})

async function errorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(KubeError)
  return error as KubeError
}

test('raw requests reach what is no resource', async () => {
  const version = await api.request('GET', '/version')
  expect(version).toMatchObject({ status: 200, body: { major: '1' } })
  expect((await api.request('GET', '/readyz')).body).toBe('ok')
  expect((await errorOf(api.request('GET', '/nowhere'))).code).toBe('NotFound')
})

describe('objects', () => {
  test('create, get, list, delete', async () => {
    const created = await api.create(pods, podBody('life', { labels: { test: 'life' } }))
    expect(created).toMatchObject({ kind: 'Pod', metadata: { name: 'life', namespace } })
    const ref = { namespace, name: 'life' }
    expect((await api.get(pods, ref)).metadata.uid).toBe(created.metadata.uid)
    const found = await api.list(pods, { namespace, labelSelector: 'test=life' })
    expect(found.items.map(o => o.metadata.uid)).toEqual([created.metadata.uid])
    expect(Number(found.metadata.resourceVersion)).toBeGreaterThan(0)
    await api.delete(pods, ref)
    expect(await errorOf(api.get(pods, ref))).toMatchObject({
      code: 'NotFound',
      status: 404,
      reason: 'NotFound',
    })
  })

  test('cluster-scoped ones too', async () => {
    const name = `node-${namespace}`
    await api.create(nodes, { metadata: { name } })
    expect((await api.get(nodes, { name })).metadata.namespace).toBeUndefined()
    await api.delete(nodes, { name })
  })

  test('the same name twice is AlreadyExists, bad contents are Invalid and say where', async () => {
    await api.create(pods, podBody('twice'))
    expect(await errorOf(api.create(pods, podBody('twice')))).toMatchObject({
      code: 'AlreadyExists',
      ambiguous: false,
    })
    const invalid = await errorOf(
      api.create(pods, { metadata: { name: 'Bad_Name', namespace }, spec: { containers: [] } }),
    )
    expect(invalid.code).toBe('Invalid')
    expect(invalid.details?.causes?.map(cause => cause.field)).toContain('spec.containers')
  })

  test('a dry run changes nothing', async () => {
    await api.create(pods, podBody('dry'), { dryRun: true })
    expect((await errorOf(api.get(pods, { namespace, name: 'dry' }))).code).toBe('NotFound')
  })

  test('pages belong together', async () => {
    const labels = { test: 'pages' }
    await Promise.all(
      Array.from({ length: 25 }, (_, i) =>
        api.create(configMaps, { metadata: { name: `page-${i}`, namespace, labels } }),
      ),
    )
    const page = await api.list(configMaps, { namespace, labelSelector: 'test=pages', limit: 10 })
    expect(page.items).toHaveLength(10)
    expect(page.metadata.continue).toBeTruthy()
    const all = await listAll(api, configMaps, { namespace, labelSelector: 'test=pages' })
    expect(new Set(all.objects.map(o => o.metadata.name)).size).toBe(25)
    expect((await errorOf(api.list(configMaps, { namespace, limit: 1, continue: 'nonsense' }))).code).toBe(
      'BadRequest',
    )
  })
})

describe('patches', () => {
  const ref = (name: string) => ({ namespace, name })

  test('merge, json, strategic', async () => {
    await api.create(pods, podBody('patched', { labels: { a: '1', b: '2' } }))
    const merged = await api.patch(pods, ref('patched'), {
      type: 'merge',
      body: { metadata: { labels: { a: null, c: '3' } } },
    })
    expect(merged.metadata.labels).toEqual({ b: '2', c: '3' })
    const json = await api.patch(pods, ref('patched'), {
      type: 'json',
      body: [
        { op: 'test', path: '/metadata/labels/b', value: '2' },
        { op: 'replace', path: '/metadata/labels/b', value: '4' },
      ],
    })
    expect(json.metadata.labels).toEqual({ b: '4', c: '3' })
    // Only a strategic merge finds the container by its name instead of replacing the list.
    const strategic = await api.patch(pods, ref('patched'), {
      type: 'strategic',
      body: { spec: { containers: [{ name: 'app', image: 'registry.invalid/other' }] } },
    })
    expect(strategic.spec?.containers.map(c => [c.name, c.image])).toEqual([
      ['app', 'registry.invalid/other'],
    ])
    expect(strategic.metadata.managedFields?.map(f => f.manager)).toContain('kit-test')
  })

  test('a failed json test and a stale version change nothing', async () => {
    const { metadata } = await api.create(pods, podBody('guarded', { labels: { a: '1' } }))
    const failed = await errorOf(
      api.patch(pods, ref('guarded'), {
        type: 'json',
        body: [{ op: 'test', path: '/metadata/labels/a', value: '2' }],
      }),
    )
    expect(failed.code).toBe('Invalid')
    await api.patch(pods, ref('guarded'), { type: 'merge', body: { metadata: { labels: { a: '2' } } } })
    const body = {
      metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion, labels: { a: '3' } },
    }
    expect((await errorOf(api.patch(pods, ref('guarded'), { type: 'merge', body }))).code).toBe('Conflict')
    expect((await api.get(pods, ref('guarded'))).metadata.labels).toEqual({ a: '2' })
  })

  test.each([
    ['merge', undefined],
    ['merge', 'status'],
    ['strategic', 'status'],
    ['apply', undefined],
  ] as const)(
    'a %s patch (%s) for another uid is a Conflict and changes nothing',
    async (type, subresource) => {
      const name = `uid-${type}-${subresource ?? 'main'}`
      await api.create(pods, podBody(name))
      const metadata = { name, namespace, uid: '00000000-0000-0000-0000-000000000000', labels: { a: '1' } }
      const body = { apiVersion: 'v1', kind: 'Pod', metadata }
      expect((await errorOf(api.patch(pods, ref(name), { type, body }, { subresource }))).code).toBe(
        'Conflict',
      )
      expect((await api.get(pods, ref(name))).metadata.labels).toBeUndefined()
    },
  )

  test('an apply for a uid never makes a new object', async () => {
    const metadata = { name: 'never', namespace, uid: '00000000-0000-0000-0000-000000000000' }
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata }
    expect((await errorOf(api.patch(configMaps, ref('never'), { type: 'apply', body }))).code).toBe(
      'Conflict',
    )
    expect((await errorOf(api.get(configMaps, ref('never')))).code).toBe('NotFound')
  })

  test('apply owns fields, a second manager conflicts, force takes over', async () => {
    const applied = (value: string) => ({
      type: 'apply' as const,
      body: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'applied', namespace },
        data: { key: value },
      },
    })
    await api.patch(configMaps, ref('applied'), applied('ours'))
    const conflict = await errorOf(
      api.patch(configMaps, ref('applied'), applied('theirs'), { fieldManager: 'somebody-else' }),
    )
    expect(conflict).toMatchObject({ code: 'Conflict', status: 409 })
    expect(conflict.details?.causes?.[0]).toMatchObject({
      reason: 'FieldManagerConflict',
      field: '.data.key',
    })
    const forced = await api.patch(configMaps, ref('applied'), applied('theirs'), {
      fieldManager: 'somebody-else',
      force: true,
    })
    expect((forced as { data?: object }).data).toEqual({ key: 'theirs' })
    // The server drops a field that is no longer applied.
    const { body } = applied('')
    const dropped = await api.patch(
      configMaps,
      ref('applied'),
      { type: 'apply', body: { ...body, data: {} } },
      { fieldManager: 'somebody-else' },
    )
    expect((dropped as { data?: object }).data ?? {}).toEqual({})
  })

  test('status is a subresource of its own', async () => {
    await api.create(pods, podBody('status'))
    const body = { metadata: { labels: { gate: 'open' } }, status: { phase: 'Running' } }
    const patched = await api.patch(pods, ref('status'), { type: 'merge', body }, { subresource: 'status' })
    expect(patched.status?.phase).toBe('Running')
    const ignored = await api.patch(pods, ref('status'), {
      type: 'merge',
      body: { status: { phase: 'Failed' } },
    })
    expect(ignored.status?.phase).toBe('Running')
  })

  test('replace with an old version is a Conflict', async () => {
    const old = await api.create(leases, {
      metadata: { name: 'lease', namespace },
      spec: { holderIdentity: 'a' },
    })
    await api.replace(leases, ref('lease'), { ...old, spec: { holderIdentity: 'b' } })
    expect(
      (await errorOf(api.replace(leases, ref('lease'), { ...old, spec: { holderIdentity: 'c' } }))).code,
    ).toBe('Conflict')
    expect((await api.get(leases, ref('lease'))).spec?.holderIdentity).toBe('b')
  })
})

describe('deletions', () => {
  test('another uid or version under the name is a Conflict and stays', async () => {
    const made = await api.create(pods, podBody('precious'))
    const ref = { namespace, name: 'precious' }
    const uid = '00000000-0000-0000-0000-000000000000'
    expect((await errorOf(api.delete(pods, ref, { uid }))).code).toBe('Conflict')
    expect((await errorOf(api.delete(pods, ref, { resourceVersion: '1' }))).code).toBe('Conflict')
    expect((await api.get(pods, ref)).metadata.deletionTimestamp).toBeUndefined()
    await api.delete(pods, ref, { uid: made.metadata.uid, gracePeriodSeconds: 0 })
    expect((await errorOf(api.delete(pods, ref))).code).toBe('NotFound')
  })
})

describe('watches', () => {
  test('the initial objects, the bookmark that ends them, then events', async () => {
    const labels = { test: 'watch' }
    await api.create(configMaps, { metadata: { name: 'watch-1', namespace, labels } })
    const seen: string[] = []
    let bookmark = ''
    for await (const event of api.watch(configMaps, {
      namespace,
      labelSelector: 'test=watch',
      sendInitialEvents: true,
    })) {
      if (event.type !== 'BOOKMARK') {
        seen.push(`${event.type} ${event.object.metadata.name}`)
        if (event.type === 'DELETED') break
        continue
      }
      // On a slow machine an ordinary bookmark may come as well.
      if (!event.initialEventsEnd) continue
      bookmark = event.resourceVersion
      await api.create(configMaps, { metadata: { name: 'watch-2', namespace, labels } })
      await api.patch(
        configMaps,
        { namespace, name: 'watch-2' },
        { type: 'merge', body: { data: { a: 'b' } } },
      )
      await api.delete(configMaps, { namespace, name: 'watch-2' })
    }
    expect(seen).toEqual(['ADDED watch-1', 'ADDED watch-2', 'MODIFIED watch-2', 'DELETED watch-2'])
    const again: string[] = []
    for await (const { type } of api.watch(configMaps, {
      namespace,
      labelSelector: 'test=watch',
      resourceVersion: bookmark,
      timeoutSeconds: 30,
    })) {
      if (type !== 'BOOKMARK') again.push(type)
      if (type === 'DELETED') break
    }
    expect(again).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
  })

  test('ends when the server was told to end it', async () => {
    await collect(api.watch(configMaps, { namespace, timeoutSeconds: 1 }))
  })

  test('a selector that makes no sense is refused', async () => {
    const refused = await errorOf(collect(api.watch(pods, { namespace, fieldSelector: 'spec.nonsense=1' })))
    expect(refused.code).toBe('BadRequest')
  })
})

describe('through a network with faults', () => {
  test('200 requests in a row leave a handful of sockets, not 200', async () => {
    const opened = await countingSockets(async () => {
      const own = createApi({ connection, userAgent: 'kit-test/1' })
      for (let i = 0; i < 200; i++) await own.get(namespaces, { name: namespace })
      await own.close()
    })
    expect(opened).toBeGreaterThan(0)
    expect(opened).toBeLessThanOrEqual(2)
  })

  test('a create whose answer is lost was executed, and is settled by reading', async () => {
    await using t = await throughProxy()
    t.proxy.loseResponse(1, on('POST'))
    const error = await errorOf(t.api.create(pods, podBody('lost')))
    expect(error).toMatchObject({ code: 'Unavailable', ambiguous: true })
    expect((await t.api.get(pods, { namespace, name: 'lost' })).metadata.uid).toBeTruthy()
    expect(t.proxy.requests.filter(r => r.method === 'POST')).toHaveLength(1)
  })

  test('an apply and a delete by uid are repeated to the same end', async () => {
    await using t = await throughProxy()
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'again', namespace },
      data: { a: '1' },
    }
    t.proxy.loseResponse(1, on('PATCH'))
    const applied = await t.api.patch(configMaps, { namespace, name: 'again' }, { type: 'apply', body })
    expect(applied).toMatchObject({ data: { a: '1' } })
    t.proxy.loseRequest(1, on('DELETE'))
    await t.api.delete(configMaps, { namespace, name: 'again' }, { uid: applied.metadata.uid })
    expect((await errorOf(t.api.get(configMaps, { namespace, name: 'again' }))).code).toBe('NotFound')
  })

  test('a throttled create happens once', async () => {
    await using t = await throughProxy()
    const fault = t.proxy.status(429, { count: 2, retryAfterSeconds: 0 })
    await t.api.create(pods, podBody('throttled'))
    expect(fault.hits).toBe(2)
    expect(t.proxy.requests.filter(r => r.method === 'POST')).toHaveLength(3)
  })

  test('a server that has gone silent costs the timeout, and the next call goes on', async () => {
    await using t = await throughProxy()
    const silence = t.proxy.halfOpen()
    const error = await errorOf(t.api.create(pods, podBody('silent'), { timeoutMs: 300 }))
    expect(error).toMatchObject({ code: 'Timeout', ambiguous: true })
    silence.end()
    expect((await errorOf(t.api.get(pods, { namespace, name: 'silent' }))).code).toBe('NotFound')
  })
})

async function throughProxy() {
  const proxy = await startFaultProxy(connection)
  const proxied = createApi({ connection: proxy.connection, userAgent: 'kit-test/1' })
  return {
    proxy,
    api: proxied,
    async [Symbol.asyncDispose]() {
      await proxied.close()
      await proxy.close()
    },
  }
}

/** Counts the TLS connections that `act` opens, and none of other clients in this process. */
async function countingSockets(act: () => Promise<void>): Promise<number> {
  const inside = new AsyncLocalStorage<boolean>()
  let connected = 0
  const onConnected = () => {
    if (inside.getStore()) connected += 1
  }
  subscribe('undici:client:connected', onConnected)
  try {
    await inside.run(true, act)
  } finally {
    unsubscribe('undici:client:connected', onConnected)
  }
  return connected
}
