/** `npm run drill`: random faults on a playground, clients that record every answer, and a checker that reads them. */
import { parseArgs } from 'node:util'
import { onInterrupt } from '../playground/interrupts.ts'
import { createProgress } from '../src/terminal/progress.ts'
import { check } from './check/check.ts'
import { rules } from './check/violation.ts'
import { choiceOf, isDrawn } from './choice.ts'
import { readHistory } from './history.ts'
import { impossible, nemeses, special } from './nemesis/nemeses.ts'
import { mustBeNew, type Plan, readRecord, roundsOf } from './record.ts'
import { drill } from './run.ts'
import { live } from './selftest/live.ts'
import { selftest } from './selftest/selftest.ts'
import { renderFigures, renderMoves, renderSummary, summarise } from './summary.ts'

const usage = `npm run drill -- [options] all | moves | NEMESIS... | selftest

  all               one to three nemeses at a time, chosen by the seed
  moves             a primary moves, and one thing happens meanwhile, both chosen by the seed
  NEMESIS...        these, one round after the other; A+B: both in one round
  selftest          forged histories must be caught, honest ones must pass; --live: also on a cluster without fences

  --rounds N        number of rounds (all, moves: 10; else one for each that is named)
  --from N          leaves out the rounds before N; round N is the same as in a whole run with this seed
  --seed S          repeats the choices of a run (random)
  --record FILE     where to write the record of the run (a new file among the temporary ones)
  --continue FILE   resumes after the last round in the record of a run, with that run's seed, rounds and nemeses
  --grant           slots have grants: failover.grant is Heir
  --replay FILE     checks a kept history again
  --list            the nemeses, and the rules of the checker
  --keep-histories  also of rounds without a violation
  --name CLUSTER    playground to run on; started when it is not up, and then taken down (drill)
  --keep            leave a cluster up that was started for this`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    from: { type: 'string', default: '1' },
    record: { type: 'string' },
    continue: { type: 'string' },
    grant: { type: 'boolean', default: false },
    seed: { type: 'string' },
    replay: { type: 'string' },
    list: { type: 'boolean', default: false },
    live: { type: 'boolean', default: false },
    name: { type: 'string', default: 'drill' },
    keep: { type: 'boolean', default: false },
    'keep-histories': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const begun = performance.now()
const say = (text: string) =>
  console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(7)} s  ${text}`)

const where = {
  name: values.name,
  keep: values.keep,
  say,
  progress: createProgress(process.stderr),
  signal: onInterrupt('taking everything down'),
}

async function main(): Promise<number> {
  if (values.list) return list()
  if (values.replay !== undefined) return replay(values.replay)
  if (values.help || (positionals.length === 0 && values.continue === undefined)) {
    console.log(usage)
    return values.help ? 0 : 2
  }
  if (positionals[0] === 'selftest') return test()
  return run()
}

function list(): number {
  const width = Math.max(...[...nemeses, ...special, ...impossible].map(({ name }) => name.length))
  console.log('Nemeses:')
  for (const { name, proves } of nemeses) console.log(`  ${name.padEnd(width)}  ${proves}`)
  console.log('\nOnly by their names, not by `all`:')
  for (const { name, proves } of special) console.log(`  ${name.padEnd(width)}  ${proves}`)
  console.log('\nNot possible on this machine:')
  for (const { name, why } of impossible) console.log(`  ${name.padEnd(width)}  ${why}`)
  console.log('\nRules of the checker:')
  for (const [name, promise] of Object.entries(rules)) console.log(`  ${name.padEnd(width)}  ${promise}`)
  return 0
}

async function replay(path: string): Promise<number> {
  const { violations, outages } = check(await readHistory(path))
  for (const { rule, slot, says } of violations)
    console.log(`${rule}${slot === undefined ? '' : ` of slot ${slot}`}: ${says}`)
  console.log(
    `${violations.length} violations; outages: ${outages.map(ms => `${ms.toFixed(0)} ms`).join(', ')}`,
  )
  return violations.length > 0 ? 1 : 0
}

async function test(): Promise<number> {
  const findings = [...selftest(), ...(values.live ? [await live(where)] : [])]
  for (const { title, isRight, says } of findings)
    console.log(`${isRight ? 'ok    ' : 'WRONG '} ${title}${says === '' ? '' : `: ${says}`}`)
  return findings.every(({ isRight }) => isRight) ? 0 : 1
}

async function run(): Promise<number> {
  if (values.record !== undefined) await mustBeNew(values.record)
  const record =
    values.continue === undefined ? { plan: asked(), rows: [] } : await readRecord(values.continue)
  const { seed, rounds, what } = record.plan
  const left = roundsOf(record).length
  say(`seed ${seed}${left === rounds ? '' : `, ${left} of ${rounds} rounds`}`)
  const { rows, isComplete } = await drill({
    ...where,
    ...{ record, recordPath: values.continue ?? values.record, keepHistories: values['keep-histories'] },
    choose: choiceOf(what),
  })
  const lines = summarise(rows)
  console.log(`\n${renderSummary(lines)}`)
  for (const more of [renderMoves(rows), renderFigures(rows)]) if (more !== '') console.log(`\n${more}`)
  const violations = lines.reduce((sum, line) => sum + line.violations, 0)
  console.log(
    `\nseed ${seed}: ${rows.length} rounds, ${violations} violations${isComplete ? '' : ', incomplete'}`,
  )
  return violations > 0 || !isComplete ? 1 : 0
}

/** @throws Error if the numbers on the command line are none */
function asked(): Plan {
  const rounds = Number(values.rounds ?? (isDrawn(positionals) ? 10 : positionals.length))
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000))
  const from = Number(values.from)
  const isRound = (number: number) => Number.isSafeInteger(number) && number > 0
  if (!isRound(rounds) || !isRound(from) || !Number.isSafeInteger(seed) || seed < 0)
    throw new Error(`--rounds, --from and --seed need whole numbers\n\n${usage}`)
  return { type: 'plan', seed, rounds, from, what: positionals, grant: values.grant }
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  return 1
})
