import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Job } from './project.ts'
import type { ProjectResult } from './results.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'understudy-reporter-'))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

function start(job: Partial<Job>, env: Record<string, string> = {}) {
  const whole: Job = {
    root: new URL('fixture', import.meta.url).pathname,
    project: 'unit',
    filters: [],
    pattern: undefined,
    skip: undefined,
    output: join(dir, 'result.json'),
    ...job,
  }
  const runner = new URL('project.ts', import.meta.url).pathname
  return spawn(process.execPath, [runner, JSON.stringify(whole)], {
    stdio: 'ignore',
    // The outer vitest's environment must not influence the inner one.
    env: { PATH: process.env['PATH'], ...env },
  })
}

async function run(job: Partial<Job>): Promise<{ code: number | null; result: ProjectResult }> {
  const [code] = (await once(start(job), 'exit')) as [number | null]
  return { code, result: JSON.parse(await readFile(join(dir, 'result.json'), 'utf8')) as ProjectResult }
}

const told = ({ tests }: ProjectResult) => tests.map(({ name, state, reason }) => [state, name, reason])

test('every way to end is told: passed, failed, skipped with its note, broken hook, broken file', async () => {
  const { code, result } = await run({})
  expect(code).toBe(1)
  expect(told(result)).toEqual(
    expect.arrayContaining([
      ['passed', 'F01 passes', undefined],
      ['failed', 'F02 fails', expect.stringContaining('expected 1 to be 2')],
      ['skipped', 'F03 is skipped', 'no such hardware'],
      ['failed', '(hook) F04 with a broken hook', 'hook'],
      ['failed', '(file)', 'cannot be loaded'],
    ]),
  )
})

test('words that match no file of the project are no failure of it', async () => {
  const { code, result } = await run({ filters: ['nothing-like-this'] })
  expect({ code, tests: result.tests }).toEqual({ code: 0, tests: [] })
})

test('a project whose setup fails counts as failed and says why', async () => {
  const { code, result } = await run({ project: 'apiserver' })
  expect(code).toBe(1)
  expect(told(result)).toContainEqual(['failed', '(project)', 'no etcd here: install Go'])
})

test('a skipped project lists its tests with the reason and runs nothing', async () => {
  const { code, result } = await run({ project: 'apiserver', skip: 'needs root' })
  expect(code).toBe(0)
  expect(told(result)).toContainEqual(['skipped', 'F01 passes', 'needs root'])
  expect(result.tests.every(({ state }) => state === 'skipped')).toBe(true)
})

test('an interrupt ends a test that never would, and the teardown runs', async () => {
  const child = start({ project: 'e2e' }, { FIXTURE_DIR: dir })
  await vi.waitFor(() => expect(existsSync(join(dir, 'started'))).toBe(true))
  child.kill('SIGINT')
  const [code] = (await once(child, 'exit')) as [number | null]
  expect(code).toBe(1)
  expect(existsSync(join(dir, 'torn-down'))).toBe(true)
  const result = JSON.parse(await readFile(join(dir, 'result.json'), 'utf8')) as ProjectResult
  expect(told(result)).toContainEqual(['failed', '(run)', 'interrupted'])
})
