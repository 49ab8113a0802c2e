import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { start } from '../../../init-waker/testing/process.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { AgentError } from '../../api/agent-errors.ts'
import { systemClock } from '../../kube/clock.ts'
import { systemRandom } from '../../kube/random.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import { runCanary } from './canary.ts'
import { architecture, criu, kernel, preflight } from './preflight.ts'

const record = { name: 'None', why: 'protection' } as const

describe('what a node has to be', () => {
  test.each([
    [architecture, 'x86_64', true],
    [architecture, 'aarch64', true],
    [architecture, 's390x', false],
    [kernel, '6.18.44', true],
    [kernel, '5.10.0-30-amd64', true],
    [kernel, '5.9.16', false],
    [kernel, '4.19.0', false],
    [criu, '4.2.1-1', true],
    [criu, '4.2', true],
    [criu, '5.0', true],
    [criu, '4.1.1-1', false],
    [criu, '3.17', false],
    [criu, 'unknown', false],
  ])('%o %s', (check, found, ok) => {
    const result = check(found)
    expect(result.ok).toBe(ok)
    expect(result.cure === undefined).toBe(ok)
  })
})

describe.skipIf(cannotDump !== undefined)(`preflight ${cannotDump ?? ''}`, () => {
  let node: TestNode
  beforeAll(async () => {
    node = await startTestNode()
  })
  afterAll(() => node?.dispose())

  const dependencies = (canary: Parameters<typeof preflight>[0]['canary']) => ({
    fs: hostFs,
    sentinel: node.sentinel,
    programs: node.programs.directory,
    criuVersion: node.programs.criuVersion,
    memoryDirectory: node.directory,
    budget: 0,
    canary,
    signal: AbortSignal.timeout(50_000),
  })

  test('this machine passes, and keeps what CRIU knows of the kernel', async () => {
    const canary = () =>
      runCanary({
        driver: node.driver,
        sentinel: node.sentinel,
        clock: systemClock,
        random: systemRandom,
        fs: hostFs,
        programs: node.programs.directory,
        directory: join(node.directory, 'canary'),
        signal: AbortSignal.timeout(50_000),
      })
    const checks = await preflight(dependencies(canary))
    expect(checks.filter(check => !check.ok)).toEqual([])
    expect(checks.find(check => check.name === 'canary')?.message).toMatch(/^saved in \d/)
    expect(checks.find(check => check.name === 'kernel-facts')?.message).toBe('known')
    expect(checks.find(check => check.name === 'grave')?.message).toMatch(/are redirected to its heir$/)
    expect(await node.sentinel.watches()).toEqual([])
    expect(checks.find(check => check.name === 'lazy-restore')?.message).toMatch(
      /^large memory is loaded while/,
    )
  })

  test('a sentinel that may have few files open is a failed check that names the limit', async () => {
    const other = await start('prlimit', ['--nofile=512:512', 'sleep', '1000'])
    onTestFinished(() => other[Symbol.asyncDispose]())
    const sentinel = {
      ...node.sentinel,
      hello: async () => ({ ...(await node.sentinel.hello()), pid: other.pid }),
    }
    const never = () => Promise.reject(new Error('tried'))
    await eventually(async () => {
      const checks = await preflight({ ...dependencies(never), sentinel })
      expect(checks.filter(check => !check.ok)).toEqual([
        {
          name: 'open-files',
          ok: false,
          message: 'the sentinel may open only 512 files',
          cure: expect.stringContaining('LimitNOFILE'),
        },
        expect.objectContaining({ name: 'canary', message: 'not tried: open-files' }),
      ])
    })
  })

  test('a node that cannot restore lazily is as good as any, and says so', async () => {
    const figures = { dumpMs: 1, frozenMs: 1, restoreMs: 1, thawMs: 1, record }
    const canary = async () => ({ ...figures, lazyProblem: 'no userfaultfd' })
    const checks = await preflight(dependencies(canary))
    expect(checks.at(-1)).toEqual({
      name: 'lazy-restore',
      ok: true,
      message: expect.stringMatching(/^large memory is loaded before its app runs, .*: no userfaultfd$/),
    })
  })

  test('a node whose kernel cannot record writes is as good as any, and says what fails', async () => {
    const figures = { dumpMs: 1, frozenMs: 1, restoreMs: 1, thawMs: 1, record }
    const checks = await preflight(dependencies(async () => figures))
    expect(checks.find(({ name }) => name === 'record-of-writes')).toEqual({
      name: 'record-of-writes',
      ok: true,
      message: 'None: a checkpoint reads all memory of a pod: protection',
    })
  })

  test('D7.grave: a node that cannot lead connections past a dead primary says so, and what is done instead', async () => {
    const figures = { dumpMs: 1, frozenMs: 1, restoreMs: 1, thawMs: 1, record }
    const checks = await preflight(dependencies(async () => ({ ...figures, graveProblem: 'no nf_tables' })))
    expect(checks.find(({ name }) => name === 'grave')).toMatchObject({
      ok: true,
      message: expect.stringMatching(/processes started in its place are ended: no nf_tables; load/),
    })
  })

  test('a canary that does not come back is a failed check with its cure', async () => {
    const checks = await preflight(
      dependencies(() => Promise.reject(new AgentError('DumpFailed', 'container app: exit code 1'))),
    )
    expect(checks.at(-1)).toMatchObject({ name: 'canary', ok: false, cure: expect.stringContaining('log') })
  })

  test('the cure of a canary that was not brought back is none for people with a pod', async () => {
    const error = new AgentError('CredentialsExceed', 'container app: LSM profile runc instead of a')
    const checks = await preflight(dependencies(() => Promise.reject(error)))
    expect(checks.at(-1)).toMatchObject({
      message: error.message,
      cure: expect.not.stringContaining('hostile'),
    })
    expect(checks.at(-1)?.cure).toMatch(/what this node does to all containers/)
  })

  test('where something else is wrong no canary is tried', async () => {
    let tried = false
    const canary = async () => {
      tried = true
      return { dumpMs: 0, frozenMs: 0, restoreMs: 0, thawMs: 0, record }
    }
    const checks = await preflight({ ...dependencies(canary), criuVersion: '4.1' })
    expect(checks.at(-1)).toMatchObject({ name: 'canary', ok: false, message: 'not tried: criu' })
    expect(tried).toBe(false)
  })
})
