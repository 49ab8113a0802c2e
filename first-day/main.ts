/** `npm run first-day`: three users who type what the pages say. */
import { readFileSync } from 'node:fs'
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { machineLine, startPressure } from '../bench/machine.ts'
import { chosen } from '../playground/chosen.ts'
import { explain } from '../playground/failure.ts'
import { onInterrupt } from '../playground/interrupts.ts'
import { createProgress, type Progress } from '../src/terminal/progress.ts'
import { type PlannedUser, planOf } from './plan.ts'
import { type PlayedUser, play } from './play.ts'
import { pageOf, planText, playedText, resultText } from './report.ts'
import { type Origin, type Recorded, readResults, recorded, writeResult } from './results.ts'
import { openStage } from './stage.ts'
import { substitutions } from './substitutions.ts'
import { type User, users } from './users.ts'

const usage = `npm run first-day -- [options]

  --list          print what each user would type, and type nothing
  --user NAME     only this user: ${users.map(({ name }) => name).join(', ')}; may be repeated
  --name NAME     the playground that is made and removed; default first-day
  --json FILE     write the result to a file
  --write         write the result to first-day/results and docs/first-day.md
  -h, --help

Plays the commit that is checked out, on Linux as root. What the commands print is in out/first-day.`

const root = new URL('../', import.meta.url)
const read = (page: string): Promise<string> => readFile(new URL(page, root), 'utf8')

interface Options {
  readonly list: boolean
  readonly users: readonly User[]
  readonly name: string
  readonly json: string | undefined
  readonly write: boolean
}

function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      list: { type: 'boolean', default: false },
      user: { type: 'string', multiple: true, default: users.map(({ name }) => name) },
      name: { type: 'string', default: 'first-day' },
      json: { type: 'string' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  return {
    list: values.list,
    users: chosen('user', users, values.user),
    name: values.name,
    json: values.json,
    write: values.write,
  }
}

async function playUser(
  planned: PlannedUser,
  name: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<{ readonly user: PlayedUser; readonly commit: string }> {
  const log = new URL(`out/first-day/${planned.user.name}.log`, root)
  await mkdir(new URL('.', log), { recursive: true })
  await writeFile(log, '')
  await using stage = await openStage({ user: planned.user, name, progress, signal })
  const outputs: Promise<void>[] = []
  const user = await play(planned, stage.shell, ({ at, typed, output, seconds, result }) => {
    console.log(`${at.padEnd(28)} ${seconds.toFixed(1).padStart(7)} s  ${resultText(result)}`)
    if (result.kind === 'failed') console.log(`$ ${typed}\n${result.tail}`)
    outputs.push(appendFile(log, `$ ${typed}\n${output}\n`))
  })
  await Promise.all(outputs)
  return { user, commit: stage.commit }
}

async function main(options: Options, signal: AbortSignal): Promise<boolean> {
  const plan = await planOf({ users, substitutions, read })
  const wanted = plan.filter(({ user }) => options.users.includes(user))
  if (options.list) {
    console.log(planText(wanted))
    return true
  }
  const progress = createProgress(process.stderr)
  const results: Recorded[] = []
  for (const planned of wanted) {
    const waited = await startPressure()
    const { user, commit } = await playUser(planned, options.name, progress, signal)
    console.log(`\n${playedText(user)}\n`)
    results.push(recorded(user, originOf(commit, await waited())))
  }
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(results, undefined, 2)}\n`)
  if (options.write) {
    for (const result of results) await writeResult(result)
    await writeFile(new URL('docs/first-day.md', root), pageOf(await readResults(), substitutions))
  }
  return results.every(user => user.commands.every(({ result }) => result.kind === 'ok'))
}

const originOf = (commit: string, waited: number | undefined): Origin => ({
  date: new Date().toISOString().slice(0, 10),
  machine: `${machineLine()}${isIdleClass() ? ', in the idle scheduling class, beside other work' : ''}`,
  commit,
  ...(waited !== undefined && { waited: Number(waited.toFixed(2)) }),
})

/** SCHED_IDLE: every other program on the machine comes first. See proc_pid_stat(5), field 41. */
function isIdleClass(): boolean {
  const afterName = readFileSync('/proc/self/stat', 'utf8').split(') ')[1] ?? ''
  return afterName.split(' ')[41 - 3] === '5'
}

const signal = onInterrupt('taking everything down')
try {
  const options = parseOptions(process.argv.slice(2))
  if (options === 'help') console.log(usage)
  else process.exitCode = (await main(options, signal)) ? 0 : 1
} catch (error) {
  if (!signal.aborted) console.error(`\n${await explain(error)}`)
  process.exitCode = signal.aborted ? 130 : 1
}
