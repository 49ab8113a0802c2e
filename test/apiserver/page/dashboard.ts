/** `kubectl understudy dashboard` in this process. */
import { buildPage } from '../../../build/page.ts'
import { runCli } from '../../../src/cli/program.ts'
import { recordingTerminal } from '../../../src/cli/testing/terminal.ts'

export interface RunningDashboard extends AsyncDisposable {
  /** The address that it prints. */
  readonly address: string
}

/** @param args further words of the command line @throws Error with what the program says, if it ends instead */
export async function startDashboard(kubeconfig: string, args: readonly string[]): Promise<RunningDashboard> {
  const printed = Promise.withResolvers<string>()
  const terminal = recordingTerminal()
  const stop = new AbortController()
  const ended = runCli(
    ['dashboard', '--kubeconfig', kubeconfig, ...args],
    { ...terminal, out: text => printed.resolve(text) },
    stop.signal,
    await buildPage(),
  )
  const early = ended.then(exitCode => {
    throw new Error(`ended with ${exitCode}: ${terminal.told.join('\n')}`)
  })
  const address = await Promise.race([printed.promise, early])
  early.catch(() => undefined)
  return {
    address,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('Ctrl-C'))
      await ended
    },
  }
}
