/** `npm test`: runs the vitest projects and prints one sum at the end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, styleText } from 'node:util'
import { brief } from './reporter/brief.ts'
import { whyNotHere } from './reporter/eligible.ts'
import { failuresOf } from './reporter/failures.ts'
import type { Job } from './reporter/project.ts'
import {
  type ProjectName,
  type ProjectResult,
  problem,
  projectNames,
  resultsFile,
  summaryLine,
  totalsOf,
  writeJson,
} from './reporter/results.ts'

const usage = `npm test -- [options] [words of file names]

  --project NAME          unit, apiserver or e2e; may be given several times; default all
  -t, --test PATTERN      only tests whose full name matches the regular expression
  --use-current-cluster   end-to-end tests on the cluster of your kubeconfig instead of one of their own
  -h, --help

Results as JSON: out/test-results.json. What they cover: npm run checklist.`

/**
 * Projects of one lane run one after the other, and the lanes side by side: end-to-end tests mostly wait for kubelets,
 * and leave the processors to the others.
 */
const lanes: readonly (readonly ProjectName[])[] = [['unit', 'apiserver'], ['e2e']]

const root = new URL('..', import.meta.url).pathname

interface Options {
  readonly projects: readonly ProjectName[]
  readonly filters: readonly string[]
  readonly pattern: string | undefined
  readonly usesCurrentCluster: boolean
}

function parse(args: readonly string[]): Options | 'help' {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      project: { type: 'string', multiple: true },
      test: { type: 'string', short: 't' },
      'use-current-cluster': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const wanted = values.project ?? projectNames
  const unknown = wanted.find(name => !projectNames.some(known => known === name))
  if (unknown !== undefined)
    throw new Error(`no project "${unknown}": there are ${projectNames.join(', ')}\n\n${usage}`)
  return {
    projects: projectNames.filter(name => wanted.includes(name)),
    filters: positionals,
    pattern: values.test,
    usesCurrentCluster: values['use-current-cluster'],
  }
}

async function main(options: Options): Promise<number> {
  const startedAt = new Date().toISOString()
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-test-'))
  const machine = {
    platform: process.platform,
    uid: process.geteuid?.() ?? -1,
    env: process.env,
    usesCurrentCluster: options.usesCurrentCluster,
  }
  const children = new Set<ChildProcess>()
  let interrupts = 0
  const interrupt = () => {
    interrupts += 1
    if (children.size === 0) return
    if (interrupts === 1) {
      say('yellow', 'Ending: tests are stopped and what they started is taken down.')
      for (const child of children) child.kill('SIGINT')
    } else if (interrupts === 3) {
      say(
        'red',
        'Killed. A cluster may be left: npm run playground -- status --all, npm run playground -- --name e2e down',
      )
      for (const { pid } of children) if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    } else say('yellow', 'Still taking down; Ctrl-C once more leaves everything as it is.')
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)

  const { filters, pattern, usesCurrentCluster } = options
  const wanted = lanes.map(lane => lane.filter(name => options.projects.includes(name)))
  const hasOneLane = wanted.filter(lane => lane.length > 0).length === 1
  const runLane = async (lane: readonly ProjectName[]): Promise<ProjectResult[]> => {
    const results: ProjectResult[] = []
    for (const project of lane) {
      if (interrupts > 0) break
      const skip = whyNotHere(project, machine)
      const output = join(scratch, `${project}.json`)
      const job: Job = { root, project, filters, pattern, skip, output }
      say('bold', `\n${project}`)
      const started = performance.now()
      const child = start(job, {
        usesCurrentCluster,
        isAlone: hasOneLane,
        compiled: join(scratch, 'compiled'),
      })
      children.add(child)
      const end = await ended(child)
      children.delete(child)
      const result = await readResult(output, project, end, performance.now() - started)
      results.push(result)
      if (skip !== undefined) say('yellow', `${result.tests.length} tests skipped: ${skip}`)
    }
    return results
  }
  const projects: ProjectResult[] = []
  try {
    projects.push(...(await Promise.all(wanted.map(runLane))).flat())
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
  const isEmpty = projects.every(project => project.tests.length === 0)
  if (isEmpty && interrupts === 0)
    projects.push({
      name: options.projects[0] ?? 'unit',
      durationMs: 0,
      tests: [
        problem('', '(run)', `no test matches ${[...options.filters, options.pattern ?? ''].join(' ')}`),
      ],
    })
  await writeJson(resultsFile, { startedAt, projects })
  report(projects)
  const totals = totalsOf(projects)
  console.log(summaryLine(totals))
  return totals.failed > 0 || interrupts > 0 ? 1 : 0
}

interface Surroundings {
  readonly usesCurrentCluster: boolean
  /** False: each line of its output begins with the name of the project. */
  readonly isAlone: boolean
  /** Where Node keeps compiled modules. Tests start some hundred processes that load the same ones. */
  readonly compiled: string
}

/** Own process group: Ctrl-C reaches only this process, and the project shuts down in its own order. */
function start(job: Job, { usesCurrentCluster, isAlone, compiled }: Surroundings): ChildProcess {
  const runner = new URL('reporter/project.ts', import.meta.url).pathname
  const output = isAlone ? 'inherit' : 'pipe'
  const child = spawn(process.execPath, [runner, JSON.stringify(job)], {
    detached: true,
    stdio: ['ignore', output, output, 'ipc'],
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: compiled,
      // API servers, etcd and kubelets collect garbage less often: that is a seventh of all processor time.
      GOGC: '800',
      ...(!isAlone && process.stdout.isTTY && { FORCE_COLOR: '1' }),
      ...(usesCurrentCluster && { UNDERSTUDY_USE_CURRENT_CLUSTER: '1' }),
    },
  })
  for (const stream of [child.stdout, child.stderr]) if (stream) tell(stream, job.project)
  return child
}

function tell(output: Readable, project: ProjectName): void {
  const prefix = styleText('dim', project.padEnd(9))
  createInterface({ input: output }).on('line', line => console.log(line === '' ? '' : `${prefix} ${line}`))
}

async function ended(child: ChildProcess): Promise<string> {
  const closed = new Promise(resolve => child.on('close', resolve))
  const end = await new Promise<string>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  try {
    // Kill processes that a test has left behind; the group belongs to the project.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
  // Its last lines come before the sum. A process outside the group that a test has left may keep the pipe open.
  await Promise.race([closed, sleep(2_000)])
  return end
}

async function readResult(
  path: string,
  name: ProjectName,
  end: string,
  durationMs: number,
): Promise<ProjectResult> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as ProjectResult
  } catch (error) {
    const why = `the project ended with ${end} and left no result: ${error instanceof Error ? error.message : error}`
    return { name, durationMs: Math.round(durationMs), tests: [problem('', '(project)', why)] }
  }
}

function report(projects: readonly ProjectResult[]): void {
  console.log()
  for (const { project, file, name, reason, story = [] } of failuresOf(projects)) {
    say('red', `FAILED ${project} ${file} ${name}\n  ${brief(reason ?? '')}`)
    for (const line of story) console.log(`    ${line}`)
  }
  for (const project of projects) {
    const seconds = (project.durationMs / 1000).toFixed(1)
    console.log(`${project.name.padEnd(10)} ${summaryLine(totalsOf([project]))}  (${seconds} s)`)
  }
}

function say(style: 'bold' | 'red' | 'yellow', text: string): void {
  console.log(styleText(style, text))
}

try {
  const options = parse(process.argv.slice(2))
  if (options === 'help') console.log(usage)
  else process.exitCode = await main(options)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
