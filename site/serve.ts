/** Serves a folder to browsers of this machine. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'

export interface SiteServer extends AsyncDisposable {
  readonly address: string
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
}

/**
 * @param port 0: any that is free
 * @throws Error of the system if the port is taken
 */
export async function serve(directory: string, port: number): Promise<SiteServer> {
  const server = createServer((request, response) => {
    void answer(directory, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('the server has no port')
  return {
    address: `http://127.0.0.1:${address.port}/`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(directory: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const say = (status: number, headers: Readonly<Record<string, string>> = {}) =>
    response.writeHead(status, headers).end()
  if (request.method !== 'GET' && request.method !== 'HEAD') return void say(405, { allow: 'GET, HEAD' })
  const path = pathOf(request.url ?? '/')
  if (path === undefined) return void say(400)
  const found = await stat(join(directory, path)).catch(() => undefined)
  if (found?.isDirectory() && !path.endsWith('/')) return void say(308, { location: encodeURI(`${path}/`) })
  const file = join(directory, path, found?.isDirectory() ? 'index.html' : '')
  const content = found?.isDirectory() ? await stat(file).catch(() => undefined) : found
  if (!content?.isFile()) return void say(404)
  response.writeHead(200, {
    'content-type': types[extname(file)] ?? 'application/octet-stream',
    'content-length': content.size,
    'cache-control': 'no-store',
  })
  if (request.method === 'HEAD') response.end()
  else await pipeline(createReadStream(file), response)
}

/** Returns the path of a request without steps upwards: URL resolves them, also encoded ones. */
function pathOf(url: string): string | undefined {
  try {
    const path = decodeURIComponent(new URL(url, 'http://site').pathname)
    return /(?:^|\/)\.\.(?:\/|$)|\0|\\/.test(path) ? undefined : path
  } catch {
    return undefined
  }
}
