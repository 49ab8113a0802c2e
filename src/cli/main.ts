/** `kubectl-understudy`, which kubectl finds on the PATH as `kubectl understudy`. */
import { runCli } from './program.ts'
import { processTerminal } from './terminal.ts'

const stop = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => stop.abort(new Error(`ended by ${name}`)))

// Not awaited: the bundle is CommonJS, so that an old Node can still report that it is too old.
void runCli(process.argv.slice(2), processTerminal(), stop.signal).then(exitCode => {
  process.exitCode = exitCode
})
