import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ensureArtifacts } from '../../playground/artifacts/artifacts.ts'
import { freePort } from '../../playground/free-port.ts'

export interface ImageRegistry {
  /** `HOST:PORT`. */
  readonly address: string
  /** Path of crane, a client. */
  readonly crane: string
  stop(): Promise<void>
}

/** Starts a registry with its content in memory. @param host an address of this machine */
export async function startImageRegistry(host = '127.0.0.1'): Promise<ImageRegistry> {
  const crane = join((await ensureArtifacts(['crane'])).crane, 'crane')
  const address = `${host}:${await freePort()}`
  const server = spawn(crane, ['registry', 'serve', '--address', address], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = once(server, 'exit')
  const stop = async (): Promise<void> => {
    server.kill()
    await exited
  }
  // It says so on its standard error once it listens.
  const lines = createInterface(server.stderr)
  await Promise.race([
    once(lines, 'line'),
    exited.then(() => Promise.reject(new Error('the registry ended at once'))),
  ])
  // A full pipe would stop it.
  lines.on('line', () => {})
  return { address, crane, stop }
}
