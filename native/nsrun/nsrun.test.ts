// Long because every case needs the same processes and namespaces.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cannotUnshare, childrenOf, start, stateOf } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { type Done, enter, type Target, targetOf } from '../testing/container.ts'

let tools = ''
beforeAll(async () => {
  tools = await mkdtemp(join(tmpdir(), 'understudy-nsrun-'))
  await cp(await buildProgram('nsrun'), join(tools, 'nsrun'))
})
afterAll(() => rm(tools, { recursive: true, force: true }))

/** Starts a process with namespaces of its own, as `unshare` makes them, and a file system like ours. */
async function withNamespaces(
  ...flags: readonly string[]
): Promise<Target & AsyncDisposable & { process: Target }> {
  const script = 'mount -t tmpfs inner /mnt && touch /mnt/inner && exec sleep 1000'
  const started = await start('unshare', [
    ...flags,
    '--kill-child',
    'sh',
    '-c',
    flags.includes('--mount') ? script : 'exec sleep 1000',
  ])
  const pid = await eventually(async () => {
    const all = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
    for (const name of all) {
      const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
      if (stat.includes('(sleep)') && (name === String(started.pid) || stat.includes(` ${started.pid} `))) {
        return Number(name)
      }
    }
    throw new Error('not yet')
  })
  const target = await targetOf(pid)
  return { ...target, process: target, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() }
}

/** Returns all descendants of a process, by their pids in this namespace. */
const treeBelow = (pid: number): number[] => childrenOf(pid).flatMap(child => [child, ...treeBelow(child)])

const sh = (script: string): string[] => ['/bin/sh', '-c', script]
const failed = (line: RegExp): Pick<Done, 'code' | 'stderr'> => ({
  code: 125,
  stderr: expect.stringMatching(line),
})

describe.skipIf(cannotUnshare !== undefined)(`nsrun ${cannotUnshare ?? ''}`, () => {
  const self = () => targetOf(process.pid)

  test.each<[string, string[], number]>([
    ['its exit code', sh('exit 42'), 42],
    ['128 and the signal that ended it', sh('kill -9 $$'), 137],
    ['127 when it is not there', ['/no/such/program'], 127],
    ['126 when it is no program', ['/etc/passwd'], 126],
  ])('passes on of a program %s', async (_, command, code) => {
    for (const mode of ['keep', 'clone', 'host'])
      expect(await enter(tools, await self(), mode, command)).toMatchObject({ code })
    // With a keeper there is one more process in between.
    expect(await enter(tools, await self(), 'keep', [...command, '@KEEPER@'])).toMatchObject({ code })
  })

  test('says what is wrong, in one line', async () => {
    const { pid, start } = await self()
    const run = (target: Target, mode = 'keep') => enter(tools, target, mode, sh('echo ran'))
    await expect(run({ pid, start: '1' })).resolves.toMatchObject(
      failed(new RegExp(`^nsrun: process ${pid} is gone: it started at ${start}, not 1\n$`)),
    )
    await expect(run({ pid: 2 ** 22 + 1, start })).resolves.toMatchObject(
      failed(/^nsrun: process \d+: .*\n$/),
    )
    for (const [target, mode] of [
      [{ pid: -1, start }, 'keep'],
      [{ pid, start: 'x' }, 'keep'],
      [{ pid, start: '' }, 'keep'],
      [{ pid, start }, 'sideways'],
    ] as const) {
      await expect(run(target, mode)).resolves.toMatchObject(failed(/^usage: /))
    }
    await using other = await withNamespaces('--user', '--map-root-user')
    await expect(run(other)).resolves.toMatchObject(failed(/^nsrun: process \d+ has a user namespace/))
  })

  test('no file gets larger than it is said, and who writes on is not ended by that', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const script =
      'head -c 9000 /dev/zero > /mnt/large; stat -c %s /mnt/large; printenv UNDERSTUDY_ROOM || echo unseen'
    const seen = await enter(tools, target, 'keep', sh(script), {}, { UNDERSTUDY_ROOM: '4096' })
    expect(seen).toMatchObject({
      code: 0,
      stdout: '4096\nunseen\n',
      stderr: expect.stringMatching(/too large/),
    })
  })

  test('no program that works in a container leaves its memory in a file when it crashes', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const limitOwn = (soft: string) => execFileSync('prlimit', ['--pid', `${process.pid}`, `--core=${soft}:`])
    const before = execFileSync('sh', ['-c', 'ulimit -S -c'], { encoding: 'utf8' }).trim()
    limitOwn('4096')
    try {
      const seen = await enter(tools, target, 'keep', sh('ulimit -S -c'))
      expect(seen).toEqual({ code: 0, stdout: '0\n', stderr: '' })
    } finally {
      limitOwn(before)
    }
  })

  test('runs a program with the mounts and pids of the target', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const seen = await enter(tools, target, 'keep', sh('ls /mnt; cat /proc/1/comm'))
    expect(seen).toEqual({ code: 0, stdout: 'inner\nsleep\n', stderr: '' })
  })

  test('a copy of the mounts is a copy', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const change = sh('mount -t tmpfs more /mnt && ls /mnt')
    expect(await enter(tools, target, 'clone', change)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await enter(tools, target, 'keep', sh('ls /mnt'))).stdout).toBe('inner\n')
    await enter(tools, target, 'keep', change)
    expect((await enter(tools, target, 'keep', sh('ls /mnt'))).stdout).toBe('')
  })

  test('the keeper has the same files open under the pid that the program sees', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const [one, two] = ['ls /proc/@KEEPER@/fd/200/', 'test /proc/@KEEPER@/fd/200 -ef /proc/self/fd/200']
    const seen = await enter(tools, target, 'keep', sh(`${one} && ${two}`))
    expect(seen).toEqual({ code: 0, stdout: 'nsrun\n', stderr: '' })
  })

  test('told to end it ends what its program has left, also where /proc is of another pid namespace', async () => {
    // /proc shows other pids there than the program's own.
    await using target = await withNamespaces('--pid', '--fork')
    const script = 'setsid sh -c "sleep 1000 & echo left; wait" & wait'
    const args = [`${target.pid}:${target.start}`, 'keep', '/bin/sh', '-c', script]
    const told = spawn(join(tools, 'nsrun'), args, { stdio: ['ignore', 'pipe', 'ignore'] })
    await once(told.stdout, 'data')
    const below = () => treeBelow(told.pid ?? 0)
    const before = below()
    expect(before.length).toBeGreaterThan(3)
    const gone = once(told, 'exit')
    told.kill('SIGTERM')
    await gone
    for (const pid of before) expect([undefined, 'Z']).toContain(stateOf(pid))
    expect(stateOf(target.pid)).toBe('S')
  })

  test('D10.children: told to end it ends more than its list holds, and nobody whose number is the start of one', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const small = await buildProgram('nsrun', {}, { LIST_BYTES: 64 })
    /** Starts processes in the target whose first pids there are as given, and waits. */
    const forking = async (...groups: readonly (readonly [firstPid: number, count: number])[]) => {
      const start = groups.map(
        ([first, count]) =>
          `open F, ">", "/proc/sys/kernel/ns_last_pid"; print F ${first - 1}; close F; for (1..${count}) { fork or exec "sleep", "1000" }`,
      )
      const script = `$| = 1; ${start.join('; ')}; print "forked"; sleep 1000`
      const args = [`${target.pid}:${target.start}`, 'keep', '/usr/bin/perl', '-e', script]
      const program = spawn(small, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      await once(program.stdout, 'data')
      const end = async () => {
        const gone = once(program, 'exit')
        program.kill('SIGTERM')
        await gone
      }
      return { end, below: () => below(program.pid ?? 0) }
    }
    const below = (pid: number): number[] => {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? []
      return children.flatMap(child => [Number(child), ...below(Number(child))])
    }
    const lives = (pid: number) =>
      existsSync(`/proc/${pid}/stat`) && !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    const bystanders = await forking([100, 40])
    const others = bystanders.below()
    // Four digits: the first 63 bytes of the list end after three digits of a number.
    const told = await forking([1000, 40])
    const left = told.below()
    expect([others.length > 40, left.length > 40]).toEqual([true, true])
    await told.end()
    expect([left.filter(lives), others.filter(pid => !lives(pid))]).toEqual([[], []])
    await bystanders.end()
  })

  test.each([
    ['is killed, and cannot go through its gate any more', ['gate'], 137],
    ['is left alone when it has gone through its gate', ['begun', 'gate'], 42],
    ['is killed where there is no gate', ['begun'], 137],
  ])('when it is told to end its program %s', async (_, files, code) => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const work = await mkdtemp(join(tmpdir(), 'nsrun-'))
    try {
      for (const name of files) await writeFile(join(work, name), '')
      const [open, script] = [
        'exec 202<"$1"; shift; exec "$@"',
        `echo started; sleep ${code === 42 ? 1 : 1_000}; exit 42`,
      ]
      const entered = [join(tools, 'nsrun'), `${target.pid}:${target.start}`, 'keep', ...sh(script)]
      const told = spawn('bash', ['-c', open, 'bash', work, ...entered], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      await once(told.stdout, 'data')
      const gone = once(told, 'exit')
      told.kill('SIGTERM')
      expect(await gone).toEqual([code, null])
      expect(existsSync(join(work, 'begun'))).toBe(true)
    } finally {
      await rm(work, { recursive: true })
    }
  })

  describe('rights', () => {
    const bit = {
      NET_RAW: 13n,
      SYS_MODULE: 16n,
      SYS_RAWIO: 17n,
      SYS_BOOT: 22n,
      SYS_TIME: 25n,
      MKNOD: 27n,
      SYSLOG: 34n,
    }
    const more = { MAC_OVERRIDE: 32n, MAC_ADMIN: 33n, AUDIT_READ: 37n, PERFMON: 38n, BPF: 39n }
    const [DAC_READ_SEARCH, KILL, SYS_PTRACE, SYS_ADMIN] = [2n, 5n, 19n, 21n]
    const [SYS_NICE, CHECKPOINT_RESTORE] = [23n, 40n]
    const maskOf = (bits: readonly bigint[]) => bits.reduce((mask, each) => mask | (1n << each), 0n)
    const never = maskOf([...Object.values(bit), ...Object.values(more)])
    /** Returns a program's view of itself. */
    const seen = async (target: Target, purpose: string, mode = 'keep') => {
      const done = await enter(
        tools,
        target,
        mode,
        sh('cat /proc/self/status; env'),
        {},
        { UNDERSTUDY_FOR: purpose },
      )
      expect(done).toMatchObject({ code: 0, stderr: '' })
      expect(done.stdout).not.toContain('UNDERSTUDY_FOR')
      const field = (name: string) => new RegExp(`^${name}:\\s*(\\w+)$`, 'm').exec(done.stdout)?.[1] ?? ''
      const sets = ['CapBnd', 'CapPrm', 'CapEff'].map(name => BigInt(`0x${field(name)}`))
      expect(new Set(sets).size).toBe(1)
      return { capabilities: sets[0] ?? 0n, filtered: field('Seccomp') === '2' }
    }

    test.each([
      ['dump', never, false],
      ['files', never & ~maskOf([bit.MKNOD]), true],
      ['pages', ~maskOf([KILL, CHECKPOINT_RESTORE]), true],
      ['track', ~maskOf([DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, SYS_NICE]), false],
    ])(
      'D10.least-rights: what is run for %s has those that this takes',
      async (purpose, without, filtered) => {
        await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
        const found = await seen(target, purpose)
        expect(found.capabilities & without).toBe(0n)
        expect(found.filtered).toBe(filtered)
      },
    )

    test('D10.least-rights: a restore also has those of the container, and leaves no filter in it', async () => {
      const bounds = ['setpriv', '--bounding-set=-all,+net_raw,+mknod', 'sleep', '1000']
      const started = await start('unshare', [
        '--mount',
        '--pid',
        '--fork',
        '--kill-child',
        '--mount-proc',
        ...bounds,
      ])
      await using _ = started
      const pid = await eventually(async () => {
        const [first = 0] = childrenOf(started.pid)
        expect(await readFile(`/proc/${first}/comm`, 'utf8')).toBe('sleep\n')
        return first
      })
      const found = await seen(await targetOf(pid), 'restore', 'clone')
      const container = maskOf([bit.NET_RAW, bit.MKNOD])
      expect(found.capabilities & (never & ~maskOf([bit.SYS_TIME]))).toBe(container)
      expect(found.capabilities & maskOf([SYS_ADMIN])).not.toBe(0n)
      expect(found.filtered).toBe(false)
    })

    test('a filter refuses what nobody needs there', async () => {
      const keyctl = process.arch === 'x64' ? 250 : 219
      const script = `/usr/bin/perl -e '$a = syscall(${keyctl}, 0, -3, 0); print $a < 0 ? $!{EPERM} ? "refused" : "other" : "done"'`
      const run = (environment: Readonly<Record<string, string>>) =>
        self().then(it => enter(tools, it, 'keep', sh(script), {}, environment))
      expect((await run({})).stdout).not.toBe('refused')
      expect((await run({ UNDERSTUDY_FOR: 'files' })).stdout).toBe('refused')
    })

    test('what is for something that is not known is not run', async () => {
      expect(
        await enter(tools, await self(), 'keep', sh('echo ran'), {}, { UNDERSTUDY_FOR: 'fun' }),
      ).toMatchObject(failed(/^nsrun: UNDERSTUDY_FOR=fun is not known\n$/))
    })
  })

  test.each([
    ['clone', {}],
    ['keep', { UNDERSTUDY_FOR: 'dump' }],
    ['keep', { UNDERSTUDY_FOR: 'files' }],
  ])(
    'directories of the node that are passed on have nothing above them, and its programs are for reading: %s %j',
    async (mode, environment) => {
      await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
      const script =
        'ls -a /proc/self/fd/200/.. ; echo x > /proc/self/fd/200/x; ls /proc/self/fd/200/../../../../etc'
      const seen = await enter(tools, target, mode, sh(script), {}, environment)
      expect(seen.stdout).toBe('.\n..\nnsrun\n')
      expect(seen.stderr).toMatch(/Read-only file system/)
      expect(seen.stderr).toMatch(/etc.*No such file/)
    },
  )

  test('D10.own-proc: who brings pages sees the /proc of the node and writes nothing there', async () => {
    await using target = await withNamespaces('--mount', '--pid', '--fork', '--mount-proc')
    const script =
      'grep -o " /proc [a-z,]*" /proc/self/mountinfo | tail -n 1; echo x > /proc/self/comm; mount -o remount,rw /proc'
    const seen = await enter(tools, target, 'apart', sh(script), {}, { UNDERSTUDY_FOR: 'pages' })
    expect(seen.stdout).toBe(' /proc ro,nosuid,nodev,noexec,relatime\n')
    expect(seen.stderr).toMatch(/comm: Read-only file system/)
    expect(seen.stderr).toMatch(/mount: .*(denied|superuser)/)
  })

  test.each([
    ['keep', false],
    ['host', true],
  ])('when it is killed in mode %s its program goes on: %s', async (mode, goesOn) => {
    const { pid, start } = await self()
    const script = 'echo $$; exec sleep 1000'
    const killed = spawn(
      join(tools, 'nsrun'),
      [`${pid}:${start}`, mode, '/bin/sh', '-c', script, '@KEEPER@'],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    )
    const [line] = (await once(killed.stdout, 'data')) as [Buffer]
    const program = Number(line.toString())
    await eventually(async () => expect(await readFile(`/proc/${program}/comm`, 'utf8')).toBe('sleep\n'))
    const gone = once(killed, 'exit')
    killed.kill('SIGKILL')
    await gone
    if (goesOn) {
      await eventually(() => expect(stateOf(program)).toBe('S'))
      process.kill(program, 'SIGKILL')
    }
    await eventually(() => expect([undefined, 'Z']).toContain(stateOf(program)))
  })
})
