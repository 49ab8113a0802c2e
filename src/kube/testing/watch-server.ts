/**
 * The list and watch half of an API server for one resource, with its history and its faults. Only for the faults that
 * a real server does not produce on demand; everything else is tested against the real one.
 */
import type { ServerResponse } from 'node:http'
import type { KubeObject } from '../object.ts'
import { type Received, startTestServer, statusBody, type TestServer } from './http-server.ts'

export interface WatchServer extends TestServer {
  /** Stores an object and notifies the watchers. Another uid is another object. */
  put(name: string, fields?: { uid?: string; labels?: Record<string, string>; note?: string }): KubeObject
  delete(name: string): void
  /** Changes the store without an event to the watchers, as if the client were away. */
  silently(act: () => void): void
  /** Sends a bookmark of the current version to all watchers. */
  bookmark(): void
  /** Forgets the history: older versions are answered with 410. */
  compact(): void
  /** Sends this text verbatim to all watchers. */
  raw(text: string | Buffer): void
  /** Ends all watches: properly, or with a reset. */
  endWatches(how: 'end' | 'cut'): void
  /** Answers the next request of this kind by hand. Returns false to let the server answer. */
  next(kind: 'list' | 'watch', handle: (request: Received) => void): void
  watchers(): number
  version: number
  /** Whether the server supports sendInitialEvents, or refuses it like a server without the feature. */
  watchList: boolean
}

export async function startWatchServer(): Promise<WatchServer> {
  const objects = new Map<string, KubeObject>()
  let history: { version: number; line: string }[] = []
  let compactedAt = 0
  let quiet = false
  const watchers = new Set<ServerResponse>()
  const once: { kind: 'list' | 'watch'; handle: (request: Received) => void }[] = []

  const lineOf = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`
  const announce = (type: string, object: KubeObject) => {
    const line = lineOf(type, object)
    history.push({ version: world.version, line })
    if (!quiet) for (const watcher of watchers) watcher.write(line)
  }
  const bookmarkLine = (annotations?: Record<string, string>) =>
    lineOf('BOOKMARK', { kind: 'Pod', metadata: { resourceVersion: String(world.version), annotations } })

  const list = (request: Received) => {
    const limit = Number(request.url.searchParams.get('limit') ?? 0) || Number.POSITIVE_INFINITY
    const offset = Number(request.url.searchParams.get('continue') ?? 0)
    const all = [...objects.values()]
    const items = all.slice(offset, offset + limit)
    const next = offset + items.length
    const more = next < all.length ? { continue: String(next) } : {}
    request.json(200, { metadata: { resourceVersion: String(world.version), ...more }, items })
  }

  const watch = (request: Received) => {
    const query = request.url.searchParams
    const initial = query.get('sendInitialEvents') === 'true'
    if (initial && !world.watchList) {
      request.json(422, statusBody(422, 'Invalid', 'sendInitialEvents: Forbidden: not enabled'))
      return
    }
    const from = Number(query.get('resourceVersion') ?? 0)
    const { response } = request
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (!initial && from < compactedAt) {
      response.end(
        lineOf('ERROR', statusBody(410, 'Expired', `too old resource version: ${from} (${compactedAt})`)),
      )
      return
    }
    if (initial) {
      for (const object of objects.values()) response.write(lineOf('ADDED', object))
      response.write(bookmarkLine({ 'k8s.io/initial-events-end': 'true' }))
    } else {
      for (const entry of history) if (entry.version > from) response.write(entry.line)
    }
    watchers.add(response)
    response.on('close', () => watchers.delete(response))
  }

  const server = await startTestServer(request => {
    const kind = request.url.searchParams.get('watch') === 'true' ? 'watch' : 'list'
    const scripted = once.findIndex(entry => entry.kind === kind)
    if (scripted >= 0) {
      const [entry] = once.splice(scripted, 1)
      entry?.handle(request)
    } else if (kind === 'watch') watch(request)
    else list(request)
  })

  const world: WatchServer = {
    ...server,
    version: 100,
    watchList: true,
    put(name, { uid = `uid-${name}`, ...rest } = {}) {
      world.version += 1
      const object = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name,
          namespace: 'ns',
          uid,
          resourceVersion: String(world.version),
          managedFields: [{ manager: 'test' }],
          ...(rest.labels ? { labels: rest.labels } : {}),
        },
        ...(rest.note ? { note: rest.note } : {}),
      }
      const type = objects.has(name) ? 'MODIFIED' : 'ADDED'
      objects.set(name, object)
      announce(type, object)
      return object
    },
    delete(name) {
      const old = objects.get(name)
      if (!old) throw new Error(`no object ${name}`)
      world.version += 1
      objects.delete(name)
      announce('DELETED', { ...old, metadata: { ...old.metadata, resourceVersion: String(world.version) } })
    },
    silently(act) {
      quiet = true
      act()
      quiet = false
    },
    bookmark() {
      world.version += 1
      for (const watcher of watchers) watcher.write(bookmarkLine())
    },
    compact() {
      history = []
      compactedAt = world.version
    },
    raw(text) {
      for (const watcher of watchers) watcher.write(text)
    },
    endWatches(how) {
      for (const watcher of watchers) {
        if (how === 'end') watcher.end()
        else watcher.socket?.resetAndDestroy()
      }
    },
    next(kind, handle) {
      once.push({ kind, handle })
    },
    watchers: () => watchers.size,
  }
  return world
}
