import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Line, parseLine } from '../line.ts'

/** Listens like a sentinel, and answers what the test's script says. */
export interface ScriptedSentinel {
  readonly path: string
  /** Every request so far. */
  readonly requests: readonly Line[]
  /** Sends these bytes unchanged to all connected clients. */
  send(text: string): void
  /** Ends all connections. */
  hangUp(): void
  /** Resolves with the nth request with that verb, from 0. */
  request(verb: string, nth?: number): Promise<Line>
  [Symbol.asyncDispose](): Promise<void>
}

export type Script = (line: Line, reply: (text: string) => void) => void

/** Starts a sentinel that calls `script` with each request. `reply` sends a line with the request's id. */
export async function startScriptedSentinel(script: Script): Promise<ScriptedSentinel> {
  const directory = await mkdtemp(join(tmpdir(), 'sentinel-'))
  const path = join(directory, 'sentinel.sock')
  const requests: Line[] = []
  const sockets = new Set<Socket>()
  const arrivals = new Set<() => void>()

  const server: Server = createServer(socket => {
    let rest = ''
    sockets.add(socket)
    socket.setEncoding('latin1')
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const text of lines) {
        const line = parseLine(text)
        if (line === undefined) throw new Error(`not a request: ${text}`)
        requests.push(line)
        script(line, reply => socket.write(`${line.id} ${reply}\n`))
        for (const arrival of arrivals) arrival()
      }
    })
  })
  await new Promise<void>(resolve => server.listen(path, resolve))

  return {
    path,
    requests,
    send(text) {
      for (const socket of sockets) socket.write(text)
    },
    hangUp() {
      for (const socket of sockets) socket.destroy()
    },
    request(verb, nth = 0) {
      return new Promise(resolve => {
        const look = () => {
          const found = requests.filter(line => line.word === verb)[nth]
          if (found === undefined) return
          arrivals.delete(look)
          resolve(found)
        }
        arrivals.add(look)
        look()
      })
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
      await rm(directory, { recursive: true, force: true })
    },
  }
}
