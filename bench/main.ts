import { writeFile } from 'node:fs/promises'
import { Command, InvalidArgumentError } from 'commander'
import { deployOperator } from '../playground/deploy.ts'
import { onInterrupt } from '../playground/interrupts.ts'
import { parseDuration } from '../src/api/memory.ts'
import { createProgress, type Progress } from '../src/terminal/progress.ts'
import type { Bench, BenchContext } from './bench.ts'
import { benches } from './benches.ts'
import { createUnixClock } from './clock.ts'
import { type BenchCluster, openTarget, type Target } from './cluster.ts'
import { writeFigures } from './figures.ts'
import { machineLine, startPressure, takePrecedence, waitedNote } from './machine.ts'
import { startOperator } from './operator.ts'
import { createSamples, type Report, type Result, renderReport, type Samples } from './report.ts'

interface Options {
  readonly json?: string
  readonly csv?: string
  readonly writeFigures?: boolean
  readonly n?: number
  readonly name: string
  readonly keep?: boolean
  readonly useCurrentCluster?: boolean
  readonly peer?: string
  readonly connections: number
  readonly rate: number
  readonly interval: string
  readonly ports: number | undefined
  readonly sizes?: readonly number[]
  readonly modes?: readonly string[]
}

const positive = (text: string) => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError('needs a whole number of at least 1')
  return value
}

const sizes = (text: string): readonly number[] => {
  const values = text.split(',').map(Number)
  if (!values.every(value => Number.isFinite(value) && value >= 0) || new Set(values).size < values.length)
    throw new InvalidArgumentError('needs different sizes in GB, such as 0,0.1,1')
  return values
}

const duration = (text: string) => {
  if (parseDuration(text) === undefined)
    throw new InvalidArgumentError('needs a duration, such as 1s or 500ms')
  return text
}

const program: Command = new Command('npm run bench --')
  .description('Measures the operator on a real cluster, beside stock Kubernetes in the same run.')
  .argument('[bench]', 'what to measure; if absent, list all')
  .option('--json <file>', 'also write the result to a file, in seconds and bytes')
  .option('--csv <file>', 'also write every measured value to a file, in seconds and bytes')
  .option('--write-figures', 'also put the result into bench/results, docs/figures.md and README.md')
  .option('--n <trials>', 'trials of each case', positive)
  .option(
    '--name <cluster>',
    'playground to run on; if it is not up, start it and take it down afterwards',
    'bench',
  )
  .option('--keep', 'leave the cluster up that this run started')
  .option(
    '--use-current-cluster',
    'the cluster of $KUBECONFIG, with the operator installed and its images at hand',
  )
  .option(
    '--peer <checkout>',
    "paper: measures the paper's own controller first; a built checkout of its repository",
  )
  .option('--connections <n>', 'load-kills: clients with one connection each', positive, 500)
  .option('--rate <n>', 'load-kills: messages a second of all clients together', positive, 2000)
  .option(
    '--sizes <list>',
    'migration, migrating-pod: sizes of the memory, GB, such as 0,0.2,1,10 (default: up to 1)',
    sizes,
  )
  .option(
    '--modes <list>',
    'failover: only some of its modes, such as Frozen,Granted; not with --write-figures',
    (text: string) => text.split(','),
  )
  .option('--interval <duration>', 'load-kills, load-freeze: interval of checkpoints', duration, '1s')
  .option(
    '--ports <n>',
    "load-kills: ports of the clients' node, which they soon use again (default: its own)",
    positive,
  )
  .action(async (name: string | undefined, options: Options) => {
    if (name === undefined) {
      console.log(list())
      return
    }
    const bench = benches.find(it => it.name === name)
    if (bench === undefined) program.error(`unknown bench ${name}\n\n${list()}`)
    if (options.peer !== undefined && bench.before === undefined)
      program.error(`--peer: ${bench.name} does not measure the paper's controller, paper does`)
    refuseModes(bench, options)
    const signal = onInterrupt('taking everything down')
    const samples = createSamples()
    const { report, waited } = await measure(bench, options, samples, signal).catch(
      async (error: unknown) => {
        await tellPart(bench, options, samples)
        throw error
      },
    )
    const origin = {
      command: commandOf(bench),
      date: new Date().toISOString().slice(0, 10),
      machine: machineLine(),
      ...(waited !== undefined && { waited }),
    }
    const result: Result = { name: report.name, origin, cases: report.cases }
    console.log(`\n${bench.title}\n${origin.machine}${waitedNote(waited)}\n\n${renderReport(report)}`)
    if (options.json !== undefined) {
      await writeFile(options.json, `${JSON.stringify(result, undefined, 2)}\n`)
      console.log(`\n${options.json}`)
    }
    if (options.csv !== undefined) {
      await writeFile(options.csv, samples.csv())
      console.log(`\n${options.csv}`)
    }
    if (options.writeFigures === true) {
      writeFigures(result)
      console.log(`\nbench/results/${result.name}.json, docs/figures.md, README.md`)
    }
  })

/** A bench may fail after an hour. Its cases so far are no result, but they cost that hour. */
async function tellPart({ name }: Bench, { csv }: Options, samples: Samples): Promise<void> {
  const part = samples.report(name)
  if (part.cases.length === 0) return
  console.log(`\nbefore the failure:\n\n${renderReport(part)}`)
  if (csv !== undefined) await writeFile(csv, samples.csv())
}

/** A result with some modes must not replace one with all. */
function refuseModes({ name, modes = [] }: Bench, options: Options): void {
  const wrong = options.modes?.filter(mode => !modes.includes(mode)) ?? []
  if (wrong.length > 0)
    program.error(`--modes: ${name} has ${modes.join(', ') || 'none'}, not ${wrong.join(', ')}`)
  if (options.modes !== undefined && options.writeFigures === true)
    program.error('--write-figures: needs all modes')
}

function list(): string {
  const width = Math.max(...benches.map(({ name }) => name.length))
  return benches.map(({ name, title }) => `${name.padEnd(width)}  ${title}`).join('\n')
}

/** Options that choose where a bench runs and what it writes; the others belong to its command. */
const aside = new Set(['json', 'csv', 'writeFigures', 'name', 'keep'])

/** Returns the command that measures the same again. */
function commandOf(bench: Bench): string {
  const given = program.options.filter(
    option =>
      program.getOptionValueSource(option.attributeName()) === 'cli' && !aside.has(option.attributeName()),
  )
  const words = given.map(option => {
    if (option.attributeName() === 'peer') return `${option.long} CHECKOUT`
    return option.required ? `${option.long} ${program.getOptionValue(option.attributeName())}` : option.long
  })
  return ['npm run bench --', bench.name, ...words].join(' ')
}

interface Measured {
  readonly report: Report
  /** Share of the time in which a task waited for a processor. */
  readonly waited: number | undefined
}

async function measure(
  bench: Bench,
  options: Options,
  samples: Samples,
  signal: AbortSignal,
): Promise<Measured> {
  const target: Target = options.useCurrentCluster
    ? { type: 'current' }
    : { type: 'playground', name: options.name, keep: options.keep === true }
  if (target.type === 'current' && bench.needs.includes('playground'))
    throw new Error(`${bench.name} inspects the nodes and needs a playground (omit --use-current-cluster)`)
  const progress = createProgress(process.stderr)
  const cluster = await openTarget(target, { images: bench.images ?? [], progress, signal })
  try {
    const begun = performance.now()
    const context: BenchContext = {
      api: cluster.api,
      playground: cluster.playground,
      operator: undefined,
      peer: options.peer,
      load: {
        connections: options.connections,
        perSecond: options.rate,
        interval: options.interval,
        ports: options.ports,
        intervalSeconds: (parseDuration(options.interval) ?? 0) / 1000,
      },
      sizes: options.sizes,
      modes: options.modes,
      n: options.n ?? bench.trials,
      clock: createUnixClock(),
      signal,
      images: cluster.images,
      say: text =>
        process.stderr.write(`${((performance.now() - begun) / 1000).toFixed(1).padStart(7)} s  ${text}\n`),
    }
    // Only now: earlier, the cluster's processes would inherit the priority.
    takePrecedence()
    await bench.before?.(context, samples)
    const started = bench.needs.includes('operator') ? await install(cluster, progress, signal) : undefined
    const pressure = await startPressure()
    try {
      const report = await bench.run({ ...context, operator: started?.operator }, samples)
      return { report, waited: await pressure() }
    } finally {
      await started?.restore(AbortSignal.timeout(120_000))
    }
  } finally {
    await cluster.close()
  }
}

/**
 * On a playground, installs the checkout's own manifests and images. On the user's cluster, uses the installed
 * operator.
 */
async function install({ api, playground }: BenchCluster, progress: Progress, signal: AbortSignal) {
  if (playground !== undefined) await deployOperator(playground, { progress, signal })
  return progress.step('operator that logs its passes', () => startOperator(api, signal))
}

try {
  await program.parseAsync()
} catch (error) {
  // Print the error with its causes: a failed bench has no result but the reason.
  console.error('bench failed without a result:', error)
  process.exitCode = 1
}
