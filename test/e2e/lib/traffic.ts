import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { playground } from './cluster.ts'

export interface Answer {
  /** Name of the pod that answered, and its count after this request; undefined without an answer. */
  readonly host: string | undefined
  readonly count: number | undefined
}

export interface Traffic extends AsyncDisposable {
  readonly answers: readonly Answer[]
  /** Ends the traffic and returns all answers. */
  stop(): Promise<readonly Answer[]>
}

const program = fileURLToPath(new URL('../../../playground/prober.ts', import.meta.url))

/** Sends steady requests to a counter from inside a node's network, with a fresh connection each. */
export async function startTraffic(url: string, intervalMs = 20, node = 'n1'): Promise<Traffic> {
  const cluster = await playground()
  const [command = '', ...args] = cluster.argvInNetwork(node, [
    process.execPath,
    program,
    url,
    String(intervalMs),
  ])
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const answers: Answer[] = []
  const exit = once(child, 'exit')
  createInterface({ input: child.stdout }).on('line', line => {
    const { body } = JSON.parse(line) as { body?: string }
    const { host, count } = JSON.parse(body ?? '{}') as Partial<Answer>
    answers.push({ host, count })
  })
  const stop = async () => {
    child.stdin.end()
    await exit
    return answers
  }
  return { answers, stop, [Symbol.asyncDispose]: async () => void (await stop()) }
}
