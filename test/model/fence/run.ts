/** `npm run model`: searches every state of the rule that keeps a slot from having two primaries. */
import { parseArgs } from 'node:util'
import type { Mutation } from '../../sim/mutants/mutant.ts'
import { runMutated } from '../../sim/mutants/mutated.ts'
import { type Explored, explore } from '../explore.ts'
import { type Bounds, fenceModel } from './model.ts'
import { fenceMutants } from './mutants.ts'

const usage = `npm run model               searches all states for each row of bounds
npm run model -- mutants    takes out each guard of the rule; every one must be noticed`

const rows: readonly Bounds[] = [
  { holders: 1, ticks: 4, changes: 2, reboots: 1 },
  { holders: 2, ticks: 4, changes: 0, reboots: 2 },
  { holders: 2, ticks: 2, changes: 2, reboots: 1 },
  { holders: 3, ticks: 2, changes: 1, reboots: 0 },
  { holders: 3, ticks: 1, changes: 1, reboots: 2 },
  { holders: 4, ticks: 4, changes: 0, reboots: 0 },
  { holders: 4, ticks: 1, changes: 1, reboots: 1 },
]

/** Searches in a process whose modules have this mutation. */
export async function exploreMutant(bounds: Bounds, mutation: Mutation): Promise<Explored> {
  const output = await runMutated([mutation], [import.meta.filename, '--one', JSON.stringify(bounds)])
  return JSON.parse(output) as Explored
}

async function mutants(): Promise<number> {
  let noticed = 0
  for (const { name, bounds, ...mutation } of fenceMutants) {
    const { counterexample, states } = await exploreMutant(bounds, mutation)
    if (counterexample !== undefined) noticed += 1
    const after = counterexample === undefined ? 'NOT NOTICED' : `after ${counterexample.steps.length} steps`
    console.log(`${after.padEnd(16)} ${String(states).padStart(8)} states  ${name}`)
  }
  console.log(`${noticed} of ${fenceMutants.length} mutants of the rule are noticed`)
  return noticed === fenceMutants.length ? 0 : 1
}

function all(): number {
  console.log('holders  ticks  changes  restarts      states        steps  seconds')
  let wrong = 0
  for (const bounds of rows) {
    const started = performance.now()
    const { states, steps, counterexample } = explore(fenceModel(bounds))
    const seconds = (performance.now() - started) / 1000
    const { holders, ticks, changes, reboots } = bounds
    const cells = [
      [holders, 7],
      [ticks, 7],
      [changes, 9],
      [reboots, 10],
      [states, 12],
      [steps, 13],
      [seconds.toFixed(1), 9],
    ] as const
    console.log(cells.map(([value, width]) => String(value).padStart(width)).join(''))
    if (counterexample === undefined) continue
    wrong += 1
    console.log([...counterexample.steps, counterexample.wrong].map(line => `  ${line}`).join('\n'))
  }
  console.log(wrong === 0 ? 'never two primaries' : `two primaries in ${wrong} of ${rows.length} searches`)
  return wrong === 0 ? 0 : 1
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { one: { type: 'string' }, help: { type: 'boolean', short: 'h', default: false } },
  })
  if (values.help) console.log(usage)
  else if (values.one !== undefined)
    console.log(JSON.stringify(explore(fenceModel(JSON.parse(values.one) as Bounds))))
  else process.exitCode = positionals[0] === 'mutants' ? await mutants() : all()
}
