/** `npm run sim`: runs the unmodified operator and agents in a cluster whose time, watches and machines fail. */
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { addAll, type BlockResult, blockRounds, type Failure, runBlock } from './block.ts'
import { movesOf, type Told, table, tryMove } from './faulted/moves.ts'
import { runRound, type Scenario } from './model/round.ts'
import { tryMutants } from './mutants/try.ts'
import { realReplay, realRounds } from './real/rounds.ts'

/** More kinds would not be read before these are fixed. */
const mostKinds = 10

const usage = `npm run sim -- [options]
  --rounds N       scenarios at random; default 1000
  --seed N         another seed, other scenarios; default 1
  --from N         leave out the first N rounds, to go on after an interruption; default 0
  --jobs N         processes; default: one a processor
  --moves          scenarios in which primaries also move: Migrations, called off or not, and drains
  --naps           scenarios in which the set is also suspended, and resumes
  --grants         heirs get grants in every scenario, not in one of four
  --keep-going     go on behind a violation; end at ${mostKinds} of different kinds
  --replay JSON    one scenario, as a violation prints it, with what happens in it
npm run sim -- real [options]    the same in true time, half a minute or more each, with a real etcd and kube-apiserver;
                                 --rounds, --seed and --replay as above
npm run sim -- faulted [options]  moves with one fault each, in each phase: the source or the target has to be right; --rounds
                                 (default 300) and --seed; it prints how each kind of fault ended
npm run sim -- mutants [names]   takes each fix back in memory; every one must be noticed`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    moves: { type: 'boolean', default: false },
    naps: { type: 'boolean', default: false },
    grants: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    replay: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const natural = (name: string, text: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new Error(`--${name} takes a whole number from 1, not "${text}"\n\n${usage}`)
  return Number(text)
}

async function replay(text: string, isReal: boolean): Promise<number> {
  const each = JSON.parse(text) as Scenario
  const log = (at: number, what: string) => console.log(String(Math.round(at)).padStart(7), what)
  const violations = isReal ? await realReplay(each, log) : (await runRound(each, log)).violations
  for (const { rule, at, what } of violations) console.log(`${String(at).padStart(7)} ${rule}: ${what}`)
  if (violations.length === 0) console.log('no violation')
  return violations.length > 0 ? 1 : 0
}

interface Rounds {
  readonly count: number
  readonly seed: number
  /** Rounds to leave out; whole blocks only. */
  readonly from: number
  readonly jobs: number
  readonly keepGoing: boolean
  readonly moves: boolean
  readonly naps: boolean
  readonly grants: boolean
}

async function rounds({ count, seed, from, jobs, keepGoing, moves, naps, grants }: Rounds): Promise<number> {
  const started = performance.now()
  const seconds = () => (performance.now() - started) / 1000
  const blocks = Array.from({ length: Math.ceil(count / blockRounds) }, (_, index) => ({
    seed: seed * 1_000_003 + index,
    rounds: Math.min(blockRounds, count - index * blockRounds),
    keepGoing,
    moves,
    naps,
    grants,
  }))
  const first = Math.floor(from / blockRounds)
  let next = first
  let done = first * blockRounds
  let hours = 0
  const kinds = new Map<string, number>()
  const ends = new Map<string, number>()
  const isEnough = () => kinds.size >= (keepGoing ? mostKinds : 1)
  const take = (result: BlockResult) => {
    done += result.rounds
    hours += result.virtualMs / 3_600_000
    addAll(ends, result.moves)
    for (const failure of result.failures) {
      const times = kinds.get(failure.kind) ?? 0
      if (times === 0) tell(failure)
      kinds.set(failure.kind, times + 1)
    }
    if (process.stderr.isTTY || next % 10 === 0)
      process.stderr.write(`${done} of ${count} rounds, ${seconds().toFixed(0)} s\n`)
  }
  const worker = () =>
    new Promise<void>((resolve, reject) => {
      const child = fork(new URL('block.ts', import.meta.url), ['serve'], {
        // A round produces much short-lived garbage.
        execArgv: [...process.execArgv, '--max-semi-space-size=64'],
      })
      const more = () => {
        const block = isEnough() ? undefined : blocks[next]
        next += 1
        if (block === undefined) child.disconnect()
        else child.send(block)
      }
      child.on('message', (result: BlockResult) => {
        take(result)
        more()
      })
      child.on('error', reject)
      child.on('exit', code => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))))
      more()
    })
  if (jobs === 1) {
    for (const block of blocks.slice(first)) {
      next += 1
      take(await runBlock(block))
      if (isEnough()) break
    }
  } else await Promise.all(Array.from({ length: Math.min(jobs, blocks.length - first) }, worker))
  if (keepGoing) for (const [kind, times] of kinds) console.log(`${String(times).padStart(7)} times ${kind}`)
  for (const [end, times] of [...ends].sort()) console.log(`${String(times).padStart(7)} Migrations ${end}`)
  const found = keepGoing ? `violations of ${kinds.size} kinds` : `${kinds.size} violations`
  console.log(
    `${done - first * blockRounds} rounds with seed ${seed}${first > 0 ? ` from ${first * blockRounds}` : ''}, ${hours.toFixed(1)} hours of clusters in ${seconds().toFixed(0)} s: ${kinds.size === 0 ? 'no violation' : found}`,
  )
  return kinds.size > 0 ? 1 : 0
}

async function faulted(count: number, seed: number): Promise<number> {
  const all: Told[] = []
  for (const each of movesOf(count, seed)) {
    const told = await tryMove(each)
    all.push(told)
    for (const what of told.wrong) console.log(`${told.row}, from ${told.phase} on: ${what}`)
    if (told.wrong.length > 0) console.log(`npm run sim -- --replay '${told.scenario}'`)
    if (all.length % 50 === 0) process.stderr.write(`${all.length} of ${count} moves\n`)
  }
  console.log(`${table(all)}, with seed ${seed}`)
  return all.some(({ wrong }) => wrong.length > 0) ? 1 : 0
}

/** Prints a failure at once, so that its analysis need not wait for the remaining rounds. */
function tell({ what, scenario }: Failure): void {
  console.log(what)
  console.log(`npm run sim -- --replay '${scenario}'`)
}

try {
  if (values.help) console.log(usage)
  else if (positionals[0] === 'mutants') process.exitCode = await tryMutants(positionals.slice(1))
  else if (positionals[0] === 'faulted')
    process.exitCode = await faulted(natural('rounds', values.rounds ?? '300'), natural('seed', values.seed))
  else if (positionals[0] !== undefined && positionals[0] !== 'real')
    throw new Error(`"${positionals[0]}" is nothing to do here\n\n${usage}`)
  else if (values.replay !== undefined)
    process.exitCode = await replay(values.replay, positionals[0] === 'real')
  else if (positionals[0] === 'real')
    process.exitCode =
      (await realRounds(natural('rounds', values.rounds ?? '1000'), natural('seed', values.seed))) > 0 ? 1 : 0
  else
    process.exitCode = await rounds({
      count: natural('rounds', values.rounds ?? '1000'),
      seed: natural('seed', values.seed),
      from: values.from === undefined ? 0 : natural('from', values.from),
      jobs: natural('jobs', values.jobs),
      keepGoing: values['keep-going'],
      moves: values.moves,
      naps: values.naps,
      grants: values.grants,
    })
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
