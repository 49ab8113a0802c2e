import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { memoryOf, start, stateOf, statusField } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { cannotCgroup, hierarchies } from './testing/cgroup.ts'
import { connect, processOf, startSentinel } from './testing/sentinel.ts'

const why = process.getuid?.() === 0 ? undefined : '(needs root: it serves nobody else)'
const cannotMount =
  why ?? (spawnSync('unshare', ['--mount', 'true']).status === 0 ? undefined : 'needs unshare --mount')

describe.skipIf(why !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`the sentinel's life, %s ${why ?? ''}`, (_, build) => {
  let program: string
  let app: string
  let directory: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'sentinel-'))
  })
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true })
  })

  const launch = (...args: string[]) =>
    spawnSync(program, ['--socket', join(directory, 's'), ...args], { encoding: 'utf8' })

  async function pidOf(socket: string): Promise<number> {
    const client = await connect(socket)
    const { values } = await client.ask('hello')
    await client.close()
    return Number(values['pid'])
  }

  async function untilGone(pid: number): Promise<void> {
    process.kill(pid, 'SIGTERM')
    await eventually(() => expect(stateOf(pid)).toBeUndefined())
  }

  test('started, it takes requests at once, in a session of its own, with nobody above it that could end', async () => {
    const { status, stdout, stderr } = launch('--log', join(directory, 'log'))
    expect([status, stdout]).toEqual([0, ''])
    const pid = await pidOf(join(directory, 's'))
    try {
      expect(statusField(pid, 'PPid')).not.toBe(String(process.pid))
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')
      expect(stat?.[3]).not.toBe(String(pid))
      // No terminal, and none of our descriptors is open.
      expect(stat?.[4]).toBe('0')
      for (const fd of [0, 1, 2])
        expect(execFileSync('readlink', [`/proc/${pid}/fd/${fd}`], { encoding: 'utf8' })).toBe('/dev/null\n')
      expect(readFileSync(join(directory, 'log'), 'utf8')).toContain('"msg":"sentinel"')
    } finally {
      await untilGone(pid)
    }
    expect(stderr).toBe('')
    expect(existsSync(join(directory, 's'))).toBe(false)
  })

  test('there is one at a time, and the next one starts when it has gone', async () => {
    await using first = await startSentinel(program, { directory })
    expect(launch().status).toBe(3)
    expect(await pidOf(first.socket)).toBe(first.pid)
    process.kill(first.pid, 'SIGKILL')
    await first.exit
    // The stale socket still exists.
    await using second = await startSentinel(program, { directory })
    expect(await pidOf(second.socket)).toBe(second.pid)
  })

  test('what it has spawned does not keep the next one out', async () => {
    const nsrun = await buildProgram('nsrun')
    const first = await startSentinel(program, { directory, args: ['--nsrun', nsrun] })
    await using target = await start(app, ['pause'])
    const client = await first.connect()
    const { pid, start: begun } = processOf(target.pid)
    const spawned = {
      target: pid,
      start: begun,
      ns: 'keep',
      cgroup: 'stay',
      deadline: 5000,
      arg: [app, 'pause'],
    }
    client.begin('spawn', spawned)
    await eventually(() => expect(spawnSync('pgrep', ['-P', String(first.pid)]).status).toBe(0))
    process.kill(first.pid, 'SIGKILL')
    await first.exit
    await using second = await startSentinel(program, { directory })
    expect(await pidOf(second.socket)).toBe(second.pid)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it when there is nothing to wait for', async signal => {
    await using sentinel = await startSentinel(program, { directory })
    const client = await sentinel.connect()
    await client.ask('hello')
    process.kill(sentinel.pid, signal)
    expect(await sentinel.exit).toBe(0)
    await client.closed
    expect(existsSync(sentinel.socket)).toBe(false)
  })

  test('SIGHUP and SIGPIPE are nothing to it', async () => {
    await using sentinel = await startSentinel(program, { directory })
    process.kill(sentinel.pid, 'SIGHUP')
    process.kill(sentinel.pid, 'SIGPIPE')
    expect(await pidOf(sentinel.socket)).toBe(sentinel.pid)
  })

  test('its log has a bound', async () => {
    const log = join(directory, 'log')
    writeFileSync(log, 'x'.repeat(600 * 1024))
    expect(launch('--log', log).status).toBe(0)
    const pid = await pidOf(join(directory, 's'))
    await untilGone(pid)
    expect(statSync(log).size).toBeLessThan(2000)
    expect(statSync(`${log}.1`).size).toBe(600 * 1024)
  })

  test.each([
    [['--nonsense']],
    [['--memory-bytes', '1']],
    [['--memory-dir', '/x']],
    [['--memory-dir', '/x', '--memory-bytes', '0']],
    [['--memory-dir', '/x', '--memory-bytes', '1M']],
    [['--cgroup', 'a/b']],
    [['--cgroup', '..']],
    [['more']],
    [['programs']],
    [['programs', '/x', 'more']],
  ])('%j is refused with the usage', args => {
    const { status, stderr } = launch(...args)
    expect([status, stderr]).toEqual([2, expect.stringContaining('usage: sentinel')])
  })

  test.each([
    [['--log', '/nonexistent/log'], 'cannot open the log'],
    [['--memory-dir', '/nonexistent/dir', '--memory-bytes', '4096'], 'cannot mount'],
    [['--socket', `/tmp/${'n'.repeat(120)}`], 'cannot listen'],
  ])('what it cannot do at the start is told to whoever starts it: %j', (args, message) => {
    const { status, stderr } = launch(...args)
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)])
    rmSync(`/tmp/${'n'.repeat(120)}.lock`, { force: true })
  })

  test.skipIf(cannotCgroup !== undefined)(
    `with --cgroup it lives beside process 1, on every hierarchy ${cannotCgroup ?? ''}`,
    async () => {
      const name = `us-sentinel-${process.pid}`
      const beside = readFileSync('/proc/1/cgroup', 'utf8').replaceAll(/\/[^/\n]*$/gm, `/${name}`)
      const own = readFileSync('/proc/self/cgroup', 'utf8')
      await using sentinel = await startSentinel(program, { directory, args: ['--cgroup', name] })
      // Our cgroup namespace may hide our path; the sentinel's path is visible to us.
      expect(readFileSync(`/proc/${sentinel.pid}/cgroup`, 'utf8')).toBe(beside)
      expect(readFileSync('/proc/self/cgroup', 'utf8')).toBe(own)
      process.kill(sentinel.pid, 'SIGTERM')
      await sentinel.exit
      for (const path of hierarchies()) if (existsSync(join(path, name))) rmdirSync(join(path, name))
    },
  )

  test.skipIf(cannotMount !== undefined)(
    `with --memory-dir it mounts a tmpfs of that size, private, kept by the next one and resized by one that finds it running ${cannotMount ?? ''}`,
    () => {
      const memory = join(directory, 'memory')
      // In a mount namespace of its own, whose end removes the mount.
      const script = `
        set -e
        start() { "$0" --socket ${directory}/s --log ${directory}/log --memory-dir ${memory} --memory-bytes $1; }
        end() { kill $(pgrep -f "^$0 --socket ${directory}/s"); while [ -e ${directory}/s ]; do sleep 0.01; done; while pgrep -f "^$0 --socket ${directory}/s" > /dev/null; do sleep 0.01; done; }
        start 1048576
        findmnt -no FSTYPE,OPTIONS ${memory}; stat -c %a ${memory}
        echo kept > ${memory}/file
        end
        start 2097152
        findmnt -no OPTIONS ${memory}; cat ${memory}/file; findmnt -no TARGET ${memory} | wc -l
        start 3145728 2> /dev/null && echo two run
        findmnt -no OPTIONS ${memory}; cat ${memory}/file; findmnt -no TARGET ${memory} | wc -l
        end`
      const out = execFileSync('unshare', ['--mount', 'sh', '-c', script, program], { encoding: 'utf8' })
      const [first = '', mode, second = '', ...rest] = out.trim().split('\n')
      expect(first).toMatch(/^tmpfs\s+rw,nosuid,nodev,noexec.*size=1024k.*mode=700/)
      expect(mode).toBe('700')
      expect(second).toMatch(/nosuid,nodev,noexec.*size=2048k/)
      expect(rest.toSpliced(2, 1)).toEqual(['kept', '1', 'kept', '1'])
      expect(rest[2]).toMatch(/nosuid,nodev,noexec.*size=3072k/)
      expect(existsSync(join(memory, 'file'))).toBe(false)
    },
  )
})

describe.skipIf(why !== undefined)(`what a sentinel costs ${why ?? ''}`, () => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await buildProgram('sentinel')
    app = await buildApp()
  })

  test('it stays below 1 MB resident, also with a hundred watches and a line of 64 KiB', async () => {
    await using sentinel = await startSentinel(program)
    expect(memoryOf(sentinel.pid, 'Rss')).toBeLessThan(1_000_000)
    await using watched = await start(app, ['pause'])
    const client = await sentinel.connect()
    for (let i = 0; i < 100; i++) await client.ask('watch', { name: `watch-${i}`, ...processOf(watched.pid) })
    await client.ask('hello', { x: 'y'.repeat(65_000) })
    await client.ask('watches')
    expect(memoryOf(sentinel.pid, 'Rss')).toBeLessThan(1_000_000)
  })

  test('it does not wake up by itself', async () => {
    await using sentinel = await startSentinel(program)
    await using watched = await start(app, ['pause'])
    const client = await sentinel.connect()
    await client.ask('watch', { name: 'x', ...processOf(watched.pid) })
    // It may not have gone to sleep yet after the request.
    await eventually(async () => {
      const before = statusField(sentinel.pid, 'voluntary_ctxt_switches')
      await new Promise(resolve => setTimeout(resolve, 2000))
      expect(statusField(sentinel.pid, 'voluntary_ctxt_switches')).toBe(before)
    }, 30_000)
  })

  test('it runs before others, and what it spawns does not', async () => {
    await using sentinel = await startSentinel(program, { args: ['--nsrun', await buildProgram('nsrun')] })
    await using target = await start(app, ['pause'])
    const policyOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[38]
    // Without real-time scheduling it gets the best nice value instead.
    const niceOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[16]
    // The tests themselves may run with another nice value.
    const usual = niceOf(process.pid)
    expect([policyOf(sentinel.pid) === '1' || niceOf(sentinel.pid) === '-20', niceOf(target.pid)]).toEqual([
      true,
      usual,
    ])
    const client = await sentinel.connect()
    const { pid, start: begun } = processOf(target.pid)
    const spawned = { target: pid, start: begun, ns: 'keep', cgroup: 'stay', deadline: 20_000 }
    const test = `PATH=/usr/bin:/bin; set -- $(cut -d')' -f2 /proc/self/stat); shift 16; [ "$1" = 0 ]; shift 22; [ "$1" = 0 ]`
    const reply = await client.ask('spawn', { ...spawned, arg: ['/bin/sh', '-ec', test] })
    expect(reply.values['code']).toBe('0')
  })

  test('it needs nothing but itself', () => {
    const root = mkdtempSync(join(tmpdir(), 'root-'))
    try {
      mkdirSync(join(root, 'bin'))
      execFileSync('cp', [program, join(root, 'bin/sentinel')])
      const { status, stdout } = spawnSync('chroot', [root, '/bin/sentinel', 'version'], { encoding: 'utf8' })
      expect([status, stdout]).toEqual([0, expect.stringMatching(/^sentinel \d/)])
    } finally {
      rmSync(root, { recursive: true })
    }
  })
})
