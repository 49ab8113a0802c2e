import { describe, expect, test, vi } from 'vitest'
import { statusBody } from './testing/http-server.ts'
import { startMirror } from './testing/mirror.ts'

describe('versions', () => {
  test('a bookmark moves the point from which it goes on', async () => {
    const t = await startMirror({ before: server => server.put('a') })
    await t.watching()
    t.server.bookmark()
    await vi.waitFor(() => expect(t.store.resourceVersion()).toBe(102n))
    // Without the bookmark this would be a 410 and a relist.
    t.server.compact()
    t.server.endWatches('cut')
    t.server.silently(() => t.server.put('b'))
    await t.pause(2_000)
    await t.has('a@101', 'b@103')
    expect(t.counts).toMatchObject({ lists: 1, BOOKMARK: 2 })
    expect(t.counts).not.toHaveProperty('error Gone')
  })

  test('too old: listed again at once, and the difference is told, deaths under the same name included', async () => {
    const t = await startMirror({
      before(server) {
        for (const name of ['kept', 'changed', 'deleted', 'replaced']) server.put(name)
      },
    })
    await t.watching()
    t.changes.length = 0
    t.server.silently(() => {
      t.server.put('changed', { note: 'x' })
      t.server.delete('deleted')
      t.server.delete('replaced')
      t.server.put('replaced', { uid: 'second' })
      t.server.put('new')
      t.server.compact()
    })
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.has('kept@101', 'changed@105', 'replaced@108', 'new@109')
    expect(t.changes.sort()).toEqual([
      'added new uid-new',
      'added replaced second',
      'deleted deleted uid-deleted',
      'deleted replaced uid-replaced',
      'updated changed uid-changed',
    ])
    expect(t.counts).toMatchObject({ lists: 2, 'error Gone': 1 })
    expect(t.clock.sleepers()).toBe(0)
  })

  test('410 in the middle of a running watch', async () => {
    const t = await startMirror({ before: server => server.put('a') })
    await t.watching()
    t.server.silently(() => t.server.delete('a'))
    t.server.raw(`${JSON.stringify({ type: 'ERROR', object: statusBody(410, 'Expired', 'too old') })}\n`)
    await t.has()
    expect(t.changes).toEqual(['added a uid-a initial', 'deleted a uid-a'])
  })

  test('a server that says 410 to everything is not asked in a tight loop', async () => {
    const t = await startMirror()
    await t.watching()
    for (let i = 0; i < 5; i++)
      t.server.next('watch', request => request.json(410, statusBody(410, 'Expired', 'too old')))
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.clock.untilSleepers(1)
    expect(t.counts).toMatchObject({ 'error Gone': 2 })
  })

  test('a server that lags behind what is known is not believed', async () => {
    const t = await startMirror({ before: server => ['a', 'b'].map(name => server.put(name)) })
    await t.watching()
    t.server.next('watch', request => request.json(410, statusBody(410, 'Expired', 'too old')))
    t.server.next('watch', ({ response }) => {
      // A past state: b did not exist yet.
      const object = { metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: '101' } }
      const end = {
        metadata: { resourceVersion: '101', annotations: { 'k8s.io/initial-events-end': 'true' } },
      }
      response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: end })}\n`)
    })
    t.server.endWatches('cut')
    await t.pause(2_000)
    await t.clock.untilSleepers(1)
    expect(t.store.size).toBe(2)
    await t.pause(10_000)
    await t.watching()
    expect(t.changes.filter(change => change.startsWith('deleted'))).toEqual([])
    expect(t.counts).toMatchObject({ lists: 2 })
  })

  test('a cluster restored from a backup is believed in the end', async () => {
    const t = await startMirror({ before: server => ['a', 'b'].map(name => server.put(name)) })
    await t.watching()
    t.server.silently(() => t.server.delete('b'))
    t.server.version = 50
    t.server.next('watch', request => request.json(410, statusBody(410, 'Expired', 'too old')))
    t.server.endWatches('cut')
    await vi.waitFor(async () => {
      await t.clock.advance(60_000)
      expect(t.store.list().map(o => o.metadata.name)).toEqual(['a'])
    })
    expect(t.store.resourceVersion()).toBe(50n)
  })

  test('an event from the past is not applied', async () => {
    const t = await startMirror({ before: server => ['a', 'b'].map(name => server.put(name)) })
    await t.watching()
    const object = { metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: '90' } }
    t.server.raw(`${JSON.stringify({ type: 'DELETED', object })}\n`)
    await vi.waitFor(() => expect(t.counts).toMatchObject({ 'error Gone': 1, lists: 2 }))
    await t.has('a@101', 'b@102')
    expect(t.changes.filter(change => change.startsWith('deleted'))).toEqual([])
  })
})
