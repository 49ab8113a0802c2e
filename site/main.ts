/** `npm run site`: builds the documentation as a site, and serves it on this machine. */
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createProgress } from '../src/terminal/progress.ts'
import { serve } from './serve.ts'
import { parseVersion, unreleased } from './versions.ts'

const usage = `npm run site -- [options]

Builds docs/ as a site, and prints where it is.

  --version vX   the release that this is; default ${unreleased}
  --into DIR     a site that gets this version beside those that it has; default out/site
  --serve        serve the site on 127.0.0.1 until Ctrl-C
  --port N       with --serve; default any that is free
  -h, --help`

interface Options {
  readonly version: string
  readonly site: string
  readonly serves: boolean
  readonly port: number
}

/** @throws Error for options that do not exist or contradict each other */
function parse(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      version: { type: 'string', default: unreleased },
      into: { type: 'string', default: join(import.meta.dirname, '../out/site') },
      serve: { type: 'boolean', default: false },
      port: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  if (values.port !== undefined && !values.serve) throw new Error('--port needs --serve')
  const port = Number(values.port ?? 0)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(`--port ${values.port}: use a number from 0 to 65535`)
  return { version: parseVersion(values.version), site: resolve(values.into), serves: values.serve, port }
}

async function main({ version, site, serves, port }: Options, signal: AbortSignal): Promise<void> {
  // The generator takes a second to load: a misspelt option is refused before.
  const { publish } = await import('./publish.ts')
  const folder = await createProgress(process.stderr).step(`site ${version}`, step =>
    publish(site, { version, signal, progress: text => step.detail(text) }),
  )
  if (!serves) {
    console.log(join(folder, 'index.html'))
    return
  }
  await using server = await serve(site, port)
  console.log(`${server.address}  (Ctrl-C ends it)`)
  if (!signal.aborted) await once(signal, 'abort')
}

const fail = (error: unknown, hint = ''): void => {
  console.error(`site: ${error instanceof Error ? error.message : String(error)}${hint}`)
  process.exitCode = 1
}

function optionsOf(args: readonly string[]): Options | 'help' | undefined {
  try {
    return parse(args)
  } catch (error) {
    fail(error, `\n\n${usage}`)
    return undefined
  }
}

const options = optionsOf(process.argv.slice(2))
const stopped = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => stopped.abort(new Error(`stopped by ${name}`)))
if (options === 'help') console.log(usage)
else if (options !== undefined) await main(options, stopped.signal).catch(error => fail(error))
