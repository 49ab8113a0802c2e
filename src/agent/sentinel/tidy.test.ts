import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createWorkDirectorySweep } from '../storage/work-directory.ts'
import { programsInUse } from './in-use.ts'
import { pruneInstalled } from './install.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tidy-'))
})
afterEach(() => rm(dir, { recursive: true }))

it('programs of earlier versions go, but for those that run', async () => {
  for (const version of ['now', 'running', 'old']) {
    await mkdir(join(dir, version))
    await copyFile('/bin/sleep', join(dir, version, 'sentinel'))
    await chmod(join(dir, version, 'sentinel'), 0o755)
  }
  const child = spawn(join(dir, 'running/sentinel'), ['600'])
  await once(child, 'spawn')
  try {
    const tidy = async () =>
      pruneInstalled(dir, [join(dir, 'now'), ...(await programsInUse({ proc: '/proc' }, dir))])
    await tidy()
    expect((await readdir(dir)).sort()).toEqual(['now', 'running'])
    child.kill('SIGKILL')
    await once(child, 'exit')
    await tidy()
    expect(await readdir(dir)).toEqual(['now'])
    await pruneInstalled(join(dir, 'absent'), [])
  } finally {
    child.kill('SIGKILL')
  }
})

it('what dumps and restores of a dead agent have left goes after an hour, whatever the wall clock does', async () => {
  await mkdir(join(dir, 'dump-old-1/app'), { recursive: true })
  await writeFile(join(dir, 'dump-old-1/app/dump.log'), 'x')
  await mkdir(join(dir, 'restore-read-2'))
  // As if the machine had been asleep for a day.
  for (const name of await readdir(dir)) await utimes(join(dir, name), 1, 1)
  let now = 0
  const gone: string[] = []
  const sweep = createWorkDirectorySweep(
    dir,
    () => now,
    async name => name === 'restore-read-2',
    path => gone.push(path),
  )
  expect(await sweep()).toBe(0)
  await mkdir(join(dir, 'dump-now-3'))
  now = 3_000_000
  expect(await sweep()).toBe(0)
  now = 3_700_000
  expect(await sweep()).toBe(1)
  expect((await readdir(dir)).sort()).toEqual(['dump-now-3', 'restore-read-2'])
  expect(gone).toEqual([join(dir, 'dump-old-1')])
})
