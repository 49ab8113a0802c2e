/** A real redis-server, from Debian's package, for tests that kill, stop and restart it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { debianProgram } from '../../../build/debian-program.ts'
import { freePort } from '../../../playground/free-port.ts'

export interface RedisServer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  start(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
  /** SIGSTOP: the kernel accepts connections, but no command gets an answer. */
  stop(): void
  resume(): void
  /** Sends one command over its own connection. @returns the raw answer. */
  command(line: string): Promise<string>
}

/** @param flags for example `--requirepass x`. */
export async function createRedisServer(...flags: readonly string[]): Promise<RedisServer> {
  const { command, args } = await debianProgram('usr/bin/redis-server', 'redis')
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
      const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
      child = spawn(command, [...args, ...settings, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
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
