/** `npm run portability`: nodes of other distributions, kernels and runtimes, and what works on them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { chosen } from '../playground/chosen.ts'
import { run } from '../playground/exec.ts'
import { explain, PlaygroundError } from '../playground/failure.ts'
import { onInterrupt } from '../playground/interrupts.ts'
import { createProgress } from '../src/terminal/progress.ts'
import { kinds, type NodeKind } from './kinds.ts'
import { generatedPart, resultText, withGeneratedPart } from './report.ts'
import { checkRequirements } from './requirements.ts'
import { isGreen, type KindResult, readResults, writeResult } from './results.ts'
import { openStage } from './stage.ts'
import { type Trial, trialNames, trials } from './trials.ts'
import { tryKind } from './try-kind.ts'

const usage = `npm run portability -- [options]

  --kind NAME     only this kind of node: ${kinds.map(({ name }) => name).join(', ')}; may be repeated
  --trial NAME    only this trial: ${trialNames.join(', ')}; may be repeated
  --name NAME     the playground that is made and removed; default portability
  --json FILE     write the results to a file
  --write         write the results to portability/results and docs/portability.md
  -h, --help

Each kind is a virtual machine without hardware support, so it takes a quarter of an hour or more. Needs Linux on
x86-64, root, and qemu-system-x86, mmdebstrap, e2fsprogs and openssh-client.`

interface Options {
  readonly kinds: readonly NodeKind[]
  readonly trials: readonly Trial[]
  readonly name: string
  readonly json: string | undefined
  readonly write: boolean
}

function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kind: { type: 'string', multiple: true, default: kinds.map(({ name }) => name) },
      trial: { type: 'string', multiple: true, default: [...trialNames] },
      name: { type: 'string', default: 'portability' },
      json: { type: 'string' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  return {
    kinds: chosen('kind', kinds, values.kind),
    trials: chosen('trial', trials, values.trial),
    name: values.name,
    json: values.json,
    write: values.write,
  }
}

const root = new URL('../', import.meta.url)
const page = new URL('docs/portability.md', root)

async function main(options: Options, signal: AbortSignal): Promise<boolean> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new PlaygroundError(
      `the nodes have x86-64 kernels, and this is ${process.platform} on ${process.arch}`,
    )
  await checkRequirements()
  const progress = createProgress(process.stderr)
  const commit = (await run(['git', 'rev-parse', '--short', 'HEAD'], { cwd: root.pathname, signal })).trim()
  const results: KindResult[] = []
  {
    await using stage = await openStage(options.name, progress, signal)
    for (const kind of options.kinds) {
      const result = await tryKind(kind, { stage, trials: options.trials, commit, progress, signal })
      results.push(result)
      console.log(`\n${resultText([result])}\n`)
    }
  }
  if (results.length > 1) console.log(`\n${resultText(results)}\n`)
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(results, undefined, 2)}\n`)
  if (options.write) await write(results)
  return results.every(isGreen)
}

async function write(results: readonly KindResult[]): Promise<void> {
  await mkdir(new URL('results/', import.meta.url), { recursive: true })
  for (const result of results) await writeResult(result)
  await writeFile(page, withGeneratedPart(await readFile(page, 'utf8'), generatedPart(await readResults())))
}

const signal = onInterrupt('taking everything down')
try {
  const options = parseOptions(process.argv.slice(2))
  if (options === 'help') console.log(usage)
  else process.exitCode = (await main(options, signal)) ? 0 : 1
} catch (error) {
  if (signal.aborted) process.exitCode = 130
  else {
    console.error(`\n${await explain(error)}`)
    process.exitCode = 1
  }
}
