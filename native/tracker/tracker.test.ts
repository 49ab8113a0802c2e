import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { staticProgram } from '../../build/static-program.ts'
import { cannotDump } from '../../src/agent/testing/node.ts'
import { buildProgram } from '../build.ts'
import { common } from '../common/directory.ts'

describe.skipIf(cannotDump !== undefined)(`a process attacks its tracker ${cannotDump ?? ''}`, () => {
  let program = ''
  beforeAll(async () => {
    program = await staticProgram({
      name: 'attack',
      directory: join(import.meta.dirname, 'testing'),
      shared: [common, import.meta.dirname],
      replaces: ['main.c'],
    })
  })
  const attack = (name: string) => {
    const { status, stdout, stderr } = spawnSync(program, [name], { encoding: 'utf8' })
    return { status, stdout, stderr }
  }

  test.each([
    ['its filter counts all the time', 'filter', 'most good 1 forbidden 0\n'],
    ['SIGCONT cuts no call: no descriptor stays', 'signals', 'most good 1 left 0 refused 0\n'],
    ['each SIGSTOP stops it', 'stop', 'most good 1 stopped 200 left 0 refused 0\n'],
    ['a foreign descriptor is not closed here', 'socket', 'within 6 s 1 kept or forged 1\n'],
    ['code that changes has its bound', 'vdso', 'ended 1 within 10 s 1\n'],
    ['a number that is used again is not held', 'reuse', 'same traced other gone later late\n'],
  ])('%s', (_, name, stdout) => {
    expect(attack(name)).toEqual({ status: 0, stdout, stderr: '' })
  })

  test('the kernel can record writes, or the tracker says why not', async () => {
    const tried = spawnSync(await buildProgram('tracker'), ['try'], { encoding: 'utf8' })
    expect(tried.stdout).toMatch(/^(yes|no [a-z ]+)\n$/)
  })
})
