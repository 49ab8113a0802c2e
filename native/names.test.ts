import { copyFile, cp, mkdir, mkdtemp, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileStatic } from '../build/compile.ts'
import { staticProgram } from '../build/static-program.ts'
import { buildWaker } from '../init-waker/build.ts'
import { cannotUnshare } from '../init-waker/testing/process.ts'
import {
  criuEnvironment,
  criuOptions,
  criuProgram,
  dumpArguments,
  dumpEnvironment,
  restoreArguments,
} from '../src/agent/criu/criu.ts'
import { newPidNamespace } from '../src/checkpoint/images/edits.ts'
import { eventually } from '../test/support/eventually.ts'
import { buildNodeTools } from './build.ts'
import { ask, childOf, enter, startContainer, targetOf } from './testing/container.ts'

const local = (name: string) => join(import.meta.dirname, name)
const environmentOf = (variables: readonly string[]) =>
  Object.fromEntries(variables.map(it => it.split('=') as [string, string]))

describe.skipIf(cannotUnshare !== undefined)(`names of files ${cannotUnshare ?? ''}`, () => {
  const programs: string[] = []
  let scratch = ''
  let tools = ''
  beforeAll(async () => {
    programs.push(await buildWaker(), await compileStatic(local('../images/counter/counter.c')))
    scratch = await mkdtemp(join(tmpdir(), 'understudy-names-'))
    tools = join(scratch, 'tools')
    await cp((await buildNodeTools()).directory, tools, { recursive: true })
    const names = { name: 'names', directory: local('testing/names'), version: 'test' }
    await copyFile(await staticProgram(names), join(tools, 'names'))
    // CRIU examines the kernel on the node.
    const check = [...criuProgram, 'check', ...criuOptions]
    const environment = { ...environmentOf(criuEnvironment), UNDERSTUDY_KDAT: 'write' }
    await enter(tools, await targetOf(process.pid), 'keep', check, {}, environment)
  })
  afterAll(async () => {
    if (scratch !== '') await rm(scratch, { recursive: true, force: true })
  })

  const counter = ['/counter', '--port', '8080']
  const hold = ['/waker', 'hold', '--dir', '/orders', '--', ...counter]
  const container = async (command: readonly string[]) =>
    startContainer({ tools, programs, command, directory: await mkdtemp(join(scratch, 'container-')) })
  const watched = (command: readonly string[]) => ['/proc/self/fd/200/names', ...command]
  /**
   * Returns the names outside of /proc, without repetitions. CRIU opens the container's root directory for
   * its mounts.
   */
  const named = async (file: string) => {
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    expect(lines.length).toBeGreaterThan(10)
    return [...new Set(lines)].filter(line => !/^\w+ \/(proc(\/.*)?)?$/.test(line)).sort()
  }

  test('D10.container-files: a dump and a restore name no file of the container by an absolute path', async () => {
    await using primary = await container(counter)
    await using second = await container(hold)
    await eventually(() => ask(primary))
    const [images, work] = [join(scratch, 'images'), join(scratch, 'work')]
    await mkdir(images)
    await mkdir(work)
    const log = (name: string) => join(scratch, name)
    const directories = { 201: `<${images}`, 202: `<${work}` }
    const dumped = await enter(
      ...([tools, primary, 'keep', watched(dumpArguments([]))] as const),
      { ...directories, 209: `>${log('dump')}` },
      environmentOf(dumpEnvironment),
    )
    expect(dumped, await readFile(join(work, 'dump.log'), 'utf8').catch(() => '')).toMatchObject({ code: 0 })
    expect(await named(log('dump'))).toEqual([])

    expect(await newPidNamespace(images)).toBe(true)
    const pipes = await Promise.all(
      [1, 2].map(async fd => ({ fd: 209 + fd, name: await readlink(`/proc/${primary.pid}/fd/${fd}`) })),
    )
    const given = { 210: `>/proc/${second.pid}/fd/1`, 211: `>/proc/${second.pid}/fd/2` }
    const restored = await enter(
      ...([tools, second, 'clone', watched(restoreArguments(pipes))] as const),
      { ...directories, ...given, 209: `>${log('restore')}` },
      environmentOf(criuEnvironment),
    )
    expect(restored, await readFile(join(work, 'restore.log'), 'utf8').catch(() => '')).toMatchObject({
      code: 0,
    })
    const inside = Number(await readFile(join(work, 'pid'), 'utf8'))
    process.kill((await childOf(second, inside)).pid, 'SIGKILL')
    expect(await named(log('restore'))).toEqual([])
  })
})
