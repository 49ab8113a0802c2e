/** The installation in the cluster under test, as an administrator handles it. */
import { runCli } from '../../../src/cli/program.ts'
import { recordingTerminal } from '../../../src/cli/testing/terminal.ts'
import { playground } from './cluster.ts'

/** Runs `kubectl understudy` with all rights. */
export async function cli(...args: string[]) {
  const terminal = recordingTerminal()
  const { kubeconfigPath } = await playground()
  const exitCode = await runCli(
    ['--kubeconfig', kubeconfigPath, ...args],
    terminal,
    AbortSignal.timeout(400_000),
  )
  return { exitCode, out: terminal.written.join('\n'), err: terminal.told.join('\n') }
}
