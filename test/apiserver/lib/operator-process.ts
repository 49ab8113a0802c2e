/** Runs the operator as a process of its own, so that a test can kill it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { FaultProxy } from '../fault-proxy.ts'

export interface OperatorProcess extends AsyncDisposable {
  /** Resolves when its log says that it leads. */
  leading(): Promise<void>
  /** Sends SIGKILL. */
  kill(): void
  /** Sends SIGTERM: it may finish its work. */
  terminate(): void
  /** The exit code; null after a signal. */
  exited(): Promise<number | null>
  /** Its log so far, one JSON object a line. */
  readonly log: readonly string[]
}

/**
 * Resolves when the operator after this one may start. A real leader waits for the Lease of the last one, and requests end long
 * before that lapses.
 */
export async function untilOver(
  operator: Pick<OperatorProcess, 'exited'>,
  proxy: Pick<FaultProxy, 'written'>,
): Promise<void> {
  await operator.exited()
  await proxy.written()
}

export function startOperator(kubeconfig: string, namespace: string, ...flags: string[]): OperatorProcess {
  const main = new URL('../../../src/main.ts', import.meta.url).pathname
  const ports = ['--health-port', '0', '--metrics-port', '0']
  const args = ['operator', '--kubeconfig', kubeconfig, '--namespace', namespace, ...ports, ...flags]
  const child: ChildProcess = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const log: string[] = []
  const exit = once(child, 'exit')
  let announce: () => void = () => {}
  const leads = new Promise<void>((resolve, reject) => {
    announce = resolve
    void exit.then(() => reject(new Error(`the operator ended:\n${log.slice(-5).join('\n')}`)))
  })
  leads.catch(() => {})
  if (child.stdout)
    createInterface(child.stdout).on('line', line => {
      log.push(line)
      if (line.includes('"msg":"leading"') && line.includes('"sets"')) announce()
    })
  return {
    log,
    leading: () => leads,
    kill: () => {
      child.kill('SIGKILL')
    },
    terminate: () => {
      child.kill('SIGTERM')
    },
    exited: async () => {
      await exit
      return child.exitCode
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exit
    },
  }
}
