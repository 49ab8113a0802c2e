import { describe, expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import { cacheView, createConsistencyStore } from './consistency.ts'
import { silentLog } from './log.ts'
import type { KubeObject } from './object.ts'
import { createStore } from './store.ts'

const settle = () => new Promise<void>(resolve => setImmediate(resolve))

const object = (
  name: string,
  version: number,
  more: { uid?: string; deletionTimestamp?: string } = {},
): KubeObject => ({
  metadata: { namespace: 'ns', name, uid: `uid-${name}`, resourceVersion: String(version), ...more },
})

const setup = () => {
  const clock = createFakeClock()
  const pods = createStore<KubeObject>()
  const sets = createStore<KubeObject>()
  const expired: string[] = []
  const consistency = createConsistencyStore({
    cache: cacheView({ pods, 'sets.example.com': sets }),
    clock,
    log: silentLog,
    metrics: { expired: resource => expired.push(resource) },
  })
  /** Applies a watch event as a reflector does. */
  const see = (event: KubeObject, type: 'upsert' | 'delete' = 'upsert') => {
    if (type === 'delete') pods.remove(`ns/${event.metadata.name}`, event)
    else pods.upsert(event)
    pods.advance(BigInt(event.metadata.resourceVersion))
  }
  pods.replace([], 10n)
  sets.replace([], 10n)
  return { clock, pods, sets, consistency, expired, see }
}

describe('consistency', () => {
  test('an owner is ready until it writes, and again when the cache has seen that', () => {
    const { consistency, see } = setup()
    expect(consistency.ready('a')).toBe(true)
    consistency.wrote('a', 'pods', '12')
    consistency.wrote('a', 'pods', '11')
    expect(consistency.ready('a')).toBe(false)
    expect(consistency.ready('b')).toBe(true)
    see(object('x', 11))
    expect(consistency.ready('a')).toBe(false)
    see(object('y', 12))
    expect(consistency.ready('a')).toBe(true)
    expect(consistency.size).toBe(0)
  })

  test('versions are compared as numbers, not as text', () => {
    const { consistency, pods } = setup()
    consistency.wrote('a', 'pods', '100')
    pods.advance(99n)
    expect(consistency.ready('a')).toBe(false)
    consistency.wrote('b', 'pods', 18_446_744_073_709_551_615n)
    pods.advance(18_446_744_073_709_551_614n)
    expect(consistency.ready('b')).toBe(false)
  })

  test('each resource counts by itself', () => {
    const { consistency, pods, sets } = setup()
    consistency.wrote('a', 'pods', '20')
    consistency.wrote('a', 'sets.example.com', '15')
    sets.advance(1000n)
    expect(consistency.ready('a')).toBe(false)
    pods.advance(20n)
    expect(consistency.ready('a')).toBe(true)
  })

  test('a write whose event was faster than its answer leaves nothing to wait for', () => {
    const { consistency, see } = setup()
    see(object('x', 11))
    consistency.wrote('a', 'pods', '11')
    expect(consistency.size).toBe(0)
  })

  test('a wait ends in the turn in which the cache catches up, also by a bookmark', async () => {
    const { consistency, pods, see } = setup()
    consistency.wrote('a', 'pods', '12')
    const waits = [consistency.waitReady('a'), consistency.waitReady('a')]
    see(object('x', 11))
    let ended = false
    void waits[0]?.then(() => {
      ended = true
    })
    await settle()
    expect(ended).toBe(false)
    pods.advance(12n)
    expect(await Promise.all(waits)).toEqual([true, true])
  })

  test('a listener is called once, when the caches have come so far', () => {
    const { consistency, pods } = setup()
    const calls: string[] = []
    consistency.wrote('a', 'pods', '12')
    consistency.onReady('a', () => calls.push('first'))
    consistency.onReady('a', () => calls.push('second'))
    pods.advance(11n)
    expect(calls).toEqual([])
    pods.advance(12n)
    pods.advance(13n)
    expect(calls).toEqual(['second'])
    consistency.onReady('a', () => calls.push('at once'))
    expect(calls).toEqual(['second', 'at once'])
  })

  test('a wait ends with its time or its signal, and leaves no timer behind', async () => {
    const { consistency, clock, pods } = setup()
    consistency.wrote('a', 'pods', '12')
    const timed = consistency.waitReady('a', undefined, 500)
    const stop = new AbortController()
    const aborted = consistency.waitReady('a', stop.signal, 500).catch(String)
    await clock.advance(100)
    stop.abort(new Error('stop'))
    expect(await aborted).toBe('Error: stop')
    await clock.advance(400)
    expect(await timed).toBe(false)
    const seen = consistency.waitReady('a', undefined, 500)
    pods.advance(12n)
    expect(await seen).toBe(true)
    expect(clock.sleepers()).toBe(0)
  })

  test('a graceful deletion is seen with the deletionTimestamp', () => {
    const { consistency, see } = setup()
    see(object('x', 11))
    consistency.deleted('a', 'pods', object('x', 11))
    expect(consistency.ready('a')).toBe(false)
    // Another change of the same pod does not count.
    see(object('x', 12))
    expect(consistency.ready('a')).toBe(false)
    see(object('x', 13, { deletionTimestamp: '2030-01-01T00:00:00Z' }))
    expect(consistency.ready('a')).toBe(true)
  })

  test('an immediate deletion is seen with the removal', async () => {
    const { consistency, see } = setup()
    see(object('x', 11))
    consistency.deleted('a', 'pods', object('x', 11))
    const wait = consistency.waitReady('a')
    see(object('x', 12), 'delete')
    expect(await wait).toBe(true)
  })

  test('a successor under the same name proves the deletion', () => {
    const { consistency, see } = setup()
    see(object('x', 11))
    consistency.deleted('a', 'pods', object('x', 11))
    see(object('x', 13, { uid: 'another' }))
    expect(consistency.ready('a')).toBe(true)
  })

  test('absent because its creation has not arrived is not deleted', () => {
    const { consistency, see } = setup()
    // Created and deleted at once; the cache has seen neither.
    consistency.deleted('a', 'pods', object('x', 15))
    expect(consistency.ready('a')).toBe(false)
    see(object('x', 15))
    expect(consistency.ready('a')).toBe(false)
    see(object('x', 16), 'delete')
    expect(consistency.ready('a')).toBe(true)
  })

  test('a cleared owner starts clean, and who waited for it goes on', async () => {
    const { consistency } = setup()
    consistency.wrote('a', 'pods', '12')
    const wait = consistency.waitReady('a')
    consistency.clear('a')
    expect(await wait).toBe(true)
    expect(consistency.ready('a')).toBe(true)
  })

  test('a write that is never seen (etcd restored from a backup) stops the owner for five minutes, not for ever', async () => {
    const { consistency, clock, expired } = setup()
    consistency.wrote('a', 'pods', '12')
    const wait = consistency.waitReady('a')
    await clock.advance(299_999)
    expect(consistency.ready('a')).toBe(false)
    await clock.advance(1)
    expect(await wait).toBe(true)
    expect(expired).toEqual(['pods'])
    expect(consistency.size).toBe(0)
  })

  test('a resource without a cache, or a version that is no number, is a bug that shows', () => {
    const { consistency } = setup()
    expect(() => consistency.wrote('a', 'nodes', '12')).toThrow('no cache of nodes')
    expect(() => consistency.wrote('a', 'pods', 'abc')).toThrow(TypeError)
  })
})
