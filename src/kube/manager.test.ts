import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Api } from './api-types.ts'
import { isKubeError } from './errors.ts'
import type { Log } from './log.ts'
import { type Manager, type ManagerOptions, runManager } from './manager.ts'
import { ownerReference } from './owner.ts'
import { type ConfigMap, configMaps, leases, pods, secrets } from './resources.ts'
import { createApiServer } from './testing/api-server.ts'
import { createMemoryApi } from './testing/memory-api.ts'

/** An API server, and managers that use it. */
function scene() {
  const server = createApiServer(() => Date.now())
  const logged: { readonly message: string; readonly healthPort?: number }[] = []
  const write = (fields: object, message: string) => void logged.push({ ...fields, message })
  const log: Log = { debug() {}, info: write, warn: write, error: write }
  const start = (
    setup: (manager: Manager) => Promise<void> | void,
    { identity = 'one', connect = () => createMemoryApi(server) }: Partial<ManagerOptions> = {},
  ) => {
    const stop = new AbortController()
    const options = { name: 'kit', namespace: 'ns', identity, connect, healthPort: 0, metricsPort: 0, log }
    const ended = runManager(options, setup, stop.signal)
    ended.catch(() => {})
    return { stop: () => stop.abort(new Error('over')), ended }
  }
  const leader = () => server.find(leases, { namespace: 'ns', name: 'kit' })?.spec?.holderIdentity
  const probe = async (path: string) => {
    const port = logged.find(({ message }) => message === 'listening')?.healthPort
    return (await fetch(`http://127.0.0.1:${port}${path}`)).status
  }
  const put = (name: string, more: object = {}) =>
    server.create(configMaps, { metadata: { name, ...more }, data: {} }, 'ns')
  return { server, start, leader, probe, put, logged }
}

/** The work of a leader that ends when its test lets it. */
function work() {
  const begun = Promise.withResolvers<{ stop: AbortSignal; lost: AbortSignal | undefined }>()
  const release = Promise.withResolvers<void>()
  const run = async (stop: AbortSignal, lost: AbortSignal | undefined) => {
    begun.resolve({ stop, lost })
    await release.promise
  }
  return { run, begun: begun.promise, end: release.resolve, fail: release.reject }
}

it('leads with full caches, and ends everything in the reverse order of its beginning', async () => {
  const { put, start, leader, probe } = scene()
  const order: string[] = []
  const job = work()
  put('a')
  const { stop, ended } = start(async manager => {
    manager.defer(() => void order.push('closed'))
    const maps = manager.cache(configMaps)
    manager.background(async signal => {
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      order.push(`background, lease of ${leader()}`)
    })
    manager.leading(async (until, lost) => {
      order.push(`leads with ${maps.size}`)
      await job.run(until, lost)
      order.push(`work, lease of ${leader()}`)
    })
    expect(await probe('/readyz')).toBe(503)
  })
  const { stop: told } = await job.begun
  expect(await probe('/readyz')).toBe(200)
  expect(await probe('/healthz')).toBe(200)
  stop()
  // Longer than a lease lasts: it is renewed while the work ends.
  await sleep(2_500)
  expect(told.aborted).toBe(true)
  expect(leader()).toBe('one')
  job.end()
  await ended
  expect(order).toEqual(['leads with 1', 'work, lease of one', 'background, lease of ', 'closed'])
  await expect(probe('/healthz')).rejects.toThrow()
})

it('a part of the work that fails stops the others, before the lease is released', async () => {
  const { start, leader } = scene()
  const [good, bad] = [work(), work()]
  const { ended } = start(manager => {
    manager.leading(good.run)
    manager.leading(bad.run)
  })
  const { stop } = await good.begun
  await bad.begun
  bad.fail(new Error('a bug'))
  await expect.poll(() => stop.aborted).toBe(true)
  expect(leader()).toBe('one')
  good.end()
  await expect(ended).rejects.toThrow('a bug')
  expect(leader()).toBe('')
})

it('background work that fails ends the process', async () => {
  const { start, leader } = scene()
  const job = work()
  const { ended } = start(manager => {
    manager.leading(job.run)
    manager.background(async () => {
      await job.begun
      throw new Error('a bug')
    })
  })
  const { stop } = await job.begun
  await expect.poll(() => stop.aborted).toBe(true)
  job.end()
  await expect(ended).rejects.toThrow('a bug')
  expect(leader()).toBe('')
})

it('a setup that fails leaves nothing open', async () => {
  const { start, probe } = scene()
  const closed: string[] = []
  const { ended } = start(async manager => {
    manager.defer(() => void closed.push('first'))
    manager.defer(() => void closed.push('second'))
    expect(await probe('/healthz')).toBe(200)
    throw new Error('no such option')
  })
  await expect(ended).rejects.toThrow('no such option')
  expect(closed).toEqual(['second', 'first'])
  await expect(probe('/healthz')).rejects.toThrow()
  await expect(start(() => {}).ended).rejects.toThrow('no work')
})

it('no write is sent after the end of a term', async () => {
  const { server, start, put } = scene()
  const job = work()
  const writes: string[] = []
  const { stop, ended } = start(manager => {
    const maps = manager.cache(configMaps)
    manager.controller({
      name: 'late',
      for: maps,
      reconcile: async (_, { api }) => {
        await job.run(manager.signal, undefined)
        const outcome = await api.create(secrets, { metadata: { name: 's' } }, { namespace: 'ns' }).then(
          () => 'sent',
          error => (isKubeError(error, 'Aborted') ? 'not sent' : String(error)),
        )
        writes.push(outcome)
      },
    })
  })
  put('a')
  await job.begun
  const taken = { spec: { holderIdentity: 'other', leaseDurationSeconds: 60 } }
  server.patch(leases, { namespace: 'ns', name: 'kit' }, 'merge', taken, undefined)
  await sleep(1_500)
  job.end()
  await expect.poll(() => writes).toEqual(['not sent'])
  expect(server.list(secrets)).toEqual([])
  stop()
  await ended
})

it('a pass begins when the caches show the writes of the one before', async () => {
  const { server, start, put } = scene()
  let isLate = false
  const passes: string[] = []
  /** A client whose watches bring no pods for a while. */
  const connect = (): Api => {
    const api = createMemoryApi(server)
    return {
      ...api,
      async *watch(resource, query, options) {
        for await (const event of api.watch(resource, query, options)) {
          while (isLate && resource.plural === 'pods') await sleep(10)
          yield event
        }
      },
    }
  }
  const { stop, ended } = start(
    manager => {
      const maps = manager.cache(configMaps)
      const made = manager.cache(pods)
      manager.controller({
        name: 'maker',
        for: maps,
        owns: [made],
        reconcile: async (key, { api }) => {
          passes.push(`${key}: ${made.size}`)
          if (made.size > 0) return
          isLate = passes.length === 1
          const owner = ownerReference(configMaps, (maps.get(key) as ConfigMap).metadata)
          const metadata = { name: `pod-${passes.length}`, ownerReferences: [owner] }
          await api.create(pods, { metadata, spec: {} }, { namespace: 'ns' })
        },
      })
    },
    { connect },
  )
  put('a')
  await expect.poll(() => server.list(pods).length).toBe(1)
  server.patch(configMaps, { namespace: 'ns', name: 'a' }, 'merge', { data: { x: 'y' } }, undefined)
  await sleep(200)
  expect(passes).toEqual(['ns/a: 0'])
  isLate = false
  await expect.poll(() => passes.at(-1)).toBe('ns/a: 1')
  expect(server.list(pods)).toHaveLength(1)

  // The deletion of an object wakes its owner.
  server.delete(pods, { namespace: 'ns', name: 'pod-1' }, {}, undefined)
  await expect.poll(() => server.list(pods).length).toBe(1)
  stop()
  await ended
})
