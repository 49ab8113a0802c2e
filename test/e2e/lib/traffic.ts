import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { playground } from './cluster.ts'

export interface Answer {
  /** Wall clock, ms, at which the probe began. */
  readonly at: number
  readonly ms: number
  readonly ok: boolean
  /** Name of the pod that answered. */
  readonly host?: string
  readonly count?: number
  readonly error?: string | number
}

export interface Traffic extends AsyncDisposable {
  readonly answers: readonly Answer[]
  /** Ends it and returns everything. */
  stop(): Promise<readonly Answer[]>
}

/** Steady requests from inside a node's network, a fresh connection each. */
export async function startTraffic(url: string, intervalMs = 20, node = 'n1'): Promise<Traffic> {
  const cluster = await playground()
  const prober = new URL('prober.ts', import.meta.url).pathname
  const [program = '', ...args] = cluster.argvInNetwork(node, [
    process.execPath,
    prober,
    url,
    String(intervalMs),
  ])
  const child: ChildProcess = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const answers: Answer[] = []
  const exit = once(child, 'exit')
  if (child.stdout) createInterface(child.stdout).on('line', line => answers.push(JSON.parse(line) as Answer))
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exit
    return answers
  }
  return { answers, stop, [Symbol.asyncDispose]: async () => void (await stop()) }
}
