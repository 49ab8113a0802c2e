/** A real redis-server, from Debian's package, that a test can do to what the world does. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { debianPackages } from '../../../images/debian.ts'
import { freePort } from '../../../playground/free-port.ts'

export interface RedisServer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  start(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
  /** SIGSTOP: connections are accepted by the kernel, and nothing is ever answered. */
  stop(): void
  resume(): void
  /** One command over a connection of its own. @returns the raw answer. */
  command(line: string): Promise<string>
}

/** @param flags for example `--requirepass x`. */
export async function createRedisServer(...flags: readonly string[]): Promise<RedisServer> {
  const { root } = await debianPackages(['busybox-static', 'redis-server', 'redis-tools'])
  const [libraries] = (await readdir(join(root, 'usr/lib'))).filter(name => name.endsWith('-linux-gnu'))
  const lib = join(root, 'usr/lib', libraries ?? '')
  const [loader] = (await readdir(lib)).filter(name => /^ld-linux.*\.so\./.test(name))
  const port = await freePort()
  let child: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals) => {
    const running = child
    child = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill(signal)
    await ended
  }
  const server: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    async start() {
      const program = join(root, 'usr/bin/redis-server')
      const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
      // The program of the package with the libraries of its release: the machine's own may be older.
      child = spawn(
        join(lib, loader ?? ''),
        ['--argv0', 'redis-server', '--library-path', lib, program, ...settings, ...flags],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      let said = ''
      for await (const chunk of child.stdout ?? []) {
        said += String(chunk)
        if (said.includes('Ready to accept connections')) break
      }
      if (!said.includes('Ready to accept connections'))
        throw new Error(`redis-server did not start: ${said}`)
    },
    kill: () => end('SIGKILL'),
    stop: () => {
      child?.kill('SIGSTOP')
    },
    resume: () => {
      child?.kill('SIGCONT')
    },
    async command(line) {
      const socket = connect(port, '127.0.0.1')
      socket.end(`${line}\r\n`)
      let answer = ''
      for await (const chunk of socket) answer += String(chunk)
      return answer
    },
    [Symbol.asyncDispose]: () => end('SIGKILL'),
  }
  await server.start()
  return server
}
