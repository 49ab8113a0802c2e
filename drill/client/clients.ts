import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Cluster } from '../../playground/cluster.ts'
import type { Entry } from '../history.ts'
import type { Target } from './target.ts'

/** The clients of one node. */
export interface Clients {
  ask(targets: readonly Target[]): void
  /** Resolves when the last call is in the history. */
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('./main.ts', import.meta.url))

/** @param place prefix of the words of these clients, different from that of all others */
export function startClients(
  cluster: Cluster,
  node: string,
  place: string,
  tell: (entry: Entry) => void,
): Clients {
  const [command = '', ...args] = cluster.argvInNetwork(node, [process.execPath, program, place])
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  lines.on('line', line => tell(JSON.parse(line) as Entry))
  const ended = Promise.all([once(lines, 'close'), once(child, 'exit')])
  ended.catch(() => {})
  // It has ended; `ended` says so.
  child.stdin.on('error', () => {})
  return {
    ask: targets => child.stdin.write(`${JSON.stringify(targets)}\n`),
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}
