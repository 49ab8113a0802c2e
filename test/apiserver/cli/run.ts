/** Runs the plugin as its users do, but in this process. Returns its output and exit code. */
import { runCli } from '../../../src/cli/program.ts'
import { type RecordingTerminal, recordingTerminal } from '../../../src/cli/testing/terminal.ts'
import { adminKubeconfig } from '../lib/plane.ts'

export interface Result {
  readonly exitCode: number
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly kubeconfig?: string
  readonly signal?: AbortSignal
  readonly terminal?: RecordingTerminal
}

export async function cli(args: readonly string[], options: RunOptions = {}): Promise<Result> {
  const { kubeconfig = adminKubeconfig(), signal = new AbortController().signal } = options
  const { terminal = recordingTerminal() } = options
  const exitCode = await runCli(['--kubeconfig', kubeconfig, ...args], terminal, signal)
  return { exitCode, out: terminal.written.join('\n'), err: terminal.told.join('\n') }
}
