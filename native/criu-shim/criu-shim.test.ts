// Long because every case of the gate needs the same pod and dump.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { elfNeeds } from '../../build/elf.ts'
import { cannotUnshare, childrenOf, start, statusField } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { criuShim } from '../criu-shim.ts'
import { buildApp } from '../sentinel/testing/build.ts'
import { buildAsks } from './testing/build.ts'

const prlimit = '/usr/bin/prlimit'

// Root has the capability on most machines; here it is always given up first.
test('files for pages are not emptied by who opens them to write, others are', async () => {
  const library = await criuShim()
  const loader = elfNeeds(await readFile('/usr/bin/cp')).interpreter ?? ''
  const directory = await mkdtemp(join(tmpdir(), 'preload-'))
  try {
    await writeFile(join(directory, 'new'), 'new')
    const copied = async (name: string, preload: readonly string[]) => {
      await writeFile(join(directory, name), 'what was there')
      const done = spawnSync(loader, [...preload, '/usr/bin/cp', '--', 'new', name], { cwd: directory })
      expect(done.status).toBe(0)
      return readFile(join(directory, name), 'utf8')
    }
    const preload = ['--preload', library]
    expect(await copied('pages-1.img', [])).toBe('new')
    expect(await copied('pages-1.img', preload)).toBe('newt was there')
    expect(await copied('pages-12.img', preload)).toBe('newt was there')
    for (const name of ['pages-.img', 'pages-1.img.new', 'core-1.img', 'pages-1x.img', 'inventory.img'])
      expect(await copied(name, preload)).toBe('new')
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a listener lets as many wait as the kernel allows, if it let more than a few', async () => {
  const library = await criuShim()
  const loader = elfNeeds(await readFile('/usr/bin/perl')).interpreter ?? ''
  const most = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8'))
  // In tcp_info of a listener, the field of selectively acknowledged packets has the backlog.
  const script = `use Socket; for my $asked (0, 1, 16, 17, 511) {
    socket(my $s, PF_INET, SOCK_STREAM, 0); listen($s, $asked);
    print unpack('x28 L', getsockopt($s, 6, 11)), " " }`
  const said = (preload: readonly string[]) =>
    spawnSync(loader, [...preload, '/usr/bin/perl', '-e', script], { encoding: 'utf8' }).stdout.trim()
  expect(said([])).toBe('0 1 16 17 511')
  expect(said(['--preload', library])).toBe(`0 1 16 ${most} ${most}`)
})

test('D5.faults: the next page fault is waited for after one, but not for ever', async () => {
  const [library, program] = [await criuShim(), await buildAsks('waits')]
  const loader = elfNeeds(await readFile(program)).interpreter ?? ''
  /** Of 20 questions each, how many had an event that came a millisecond later: after an event, after none, and when the patience is used up. */
  const had = (preload: readonly string[]) => {
    const { stdout } = spawnSync(loader, [...preload, program], { encoding: 'utf8' })
    expect(stdout).toMatch(/^\d+ \d+ \d+\n$/)
    return stdout.split(' ').map(Number)
  }
  // A program that gets no processor for a millisecond has the event in any case.
  const [never, always] = [7, 13]
  for (const count of had([])) expect(count).toBeLessThan(never)
  const [first = 0, ...others] = had(['--preload', library])
  expect(first).toBeGreaterThan(always)
  for (const count of others) expect(count).toBeLessThan(never)
})

describe.skipIf(cannotUnshare !== undefined)(
  `limits of another user's process ${cannotUnshare ?? ''}`,
  () => {
    let loader = ''
    let library = ''
    beforeAll(async () => {
      loader = elfNeeds(await readFile(prlimit)).interpreter ?? ''
      library = await criuShim()
    })

    const withoutCapability = (preload: readonly string[], ...args: readonly string[]) => {
      const set = ['--bounding-set', '-sys_resource', '--inh-caps', '-sys_resource']
      const done = spawnSync('setpriv', [...set, loader, ...preload, prlimit, ...args], { encoding: 'utf8' })
      return { code: done.status, stdout: done.stdout, stderr: done.stderr }
    }
    const other = async () => {
      const script =
        'ulimit -S -n 123; ulimit -H -n 456; ulimit -S -c 0; exec setpriv --reuid 1000 --clear-groups sleep 1000'
      const process = await start('sh', ['-c', script])
      await eventually(() => expect(statusField(process.pid, 'Uid')).toBe('1000\t1000\t1000\t1000'))
      return process
    }
    const columns = ['--raw', '--noheadings', '--output', 'DESCRIPTION,SOFT,HARD']

    test('cannot be read, and can be with the library', async () => {
      await using process = await other()
      const asked = ['--pid', String(process.pid), ...columns]
      expect(withoutCapability([], ...asked)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('Operation not permitted'),
      })
      const seen = withoutCapability(['--preload', library], ...asked)
      expect(seen).toMatchObject({ code: 0, stderr: '' })
      // All sixteen, in the kernel's own format.
      const written = (await readFile(`/proc/${process.pid}/limits`, 'utf8')).trim().split('\n').slice(1)
      const wanted = written.map(line => [line.slice(26, 47).trim(), line.slice(47, 68).trim()].join(' '))
      expect(wanted).toHaveLength(16)
      const values = seen.stdout
        .trim()
        .split('\n')
        .map(line => line.split(' ').slice(-2).join(' '))
      expect(values.sort()).toEqual(wanted.sort())
      expect(values).toContain('123 456')
    })

    test('cannot be changed, with or without it', async () => {
      await using process = await other()
      for (const preload of [[], ['--preload', library]])
        expect(withoutCapability(preload, '--pid', String(process.pid), '--nofile=10:20')).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('Operation not permitted'),
        })
      expect(await readFile(`/proc/${process.pid}/limits`, 'utf8')).toMatch(/^Max open files +123 +456 /m)
    })

    test("one's own hard limit is not exceeded, and asking for more gives all of it", () => {
      const inner = ['--nofile=1000:2000', loader, '--preload', library, prlimit, '--nofile=5000:9000']
      const limits = [prlimit, '--nofile', ...columns]
      const done = withoutCapability([], ...inner, ...limits)
      expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/ 2000 2000\n$/) })
    })
  },
)

describe.skipIf(cannotUnshare !== undefined)(`the gate ${cannotUnshare ?? ''}`, () => {
  const perl = '/usr/bin/perl'
  /** Descriptor 199 as the sentinel provides it: `said` gets the received bytes, and `end` shows EOF. */
  const heard = '199> >(cat > "$1/said"; touch "$1/end")'
  /** The pipe of a dead sentinel. */
  const unheard = '9<>"$1/pipe" 199>"$1/pipe" 9<&-'

  /** Starts a pod of one process, and a work directory for its dump. */
  const startPod = (...files: readonly string[]) => podOf(['sleep', '1000'], {}, files)

  async function podOf(
    command: readonly string[],
    limits: Readonly<Record<string, number>>,
    files: readonly string[],
  ) {
    const loader = elfNeeds(await readFile(perl)).interpreter ?? ''
    const library = await criuShim({}, limits)
    const work = await mkdtemp(join(tmpdir(), 'gate-'))
    const args = ['--pid', '--fork', '--kill-child', '--mount-proc', ...command]
    const container = await start('unshare', args)
    onTestFinished(async () => {
      await container[Symbol.asyncDispose]()
      await rm(work, { recursive: true })
    })
    const pid = await eventually(() => {
      const [first] = childrenOf(container.pid)
      // Before it runs the command, it still has to mount its /proc.
      if (first === undefined || readFileSync(`/proc/${first}/comm`, 'utf8') === 'unshare\n')
        throw new Error('not there yet')
      return first
    })
    spawnSync('mkfifo', [join(work, 'pipe')])
    for (const name of files) await writeFile(join(work, name), '')
    return {
      pid,
      has: (name: string) => existsSync(join(work, name)),
      put: (name: string) => writeFile(join(work, name), ''),
      /** Runs a program that calls alarm() as CRIU does. */
      dump: (pipe = heard, script: string | readonly string[] = 'alarm 10; exit 0') => {
        const open = `exec 202<"$1" ${pipe}; shift; exec "$@"`
        const inside = ['--target', String(pid), '--pid', '--mount', 'bash', '-c', open, 'bash', work]
        const program = typeof script === 'string' ? [perl, '-e', script] : script
        return start('nsenter', [...inside, loader, '--preload', library, ...program])
      },
      said: async () => {
        await eventually(() => access(join(work, 'end')))
        return (await readFile(join(work, 'said'))).length
      },
    }
  }

  test.each([
    ['a dump that went well says that it is done', true, 'alarm 10; exit 0', { code: 0, bytes: 1 }],
    ['also when it has had children', true, 'alarm 10; fork or exit 0; wait', { code: 0, bytes: 1 }],
    ['one that failed does not', true, 'alarm 10; exit 1', { code: 1, bytes: 0 }],
    ['nor does one without a gate', false, 'alarm 10; exit 0', { code: 0, bytes: 0 }],
  ])('%s', async (_, gate, script, end) => {
    const pod = await startPod(...(gate ? ['gate', 'go'] : []))
    process.kill(pod.pid, 'SIGSTOP')
    await using dump = await pod.dump(heard, script)
    expect({ code: await dump.exit, bytes: await pod.said() }).toEqual(end)
  })

  /** Traces a process for a moment while a dump of it waits for it to stand. Returns the end of the dump, and how long that took, ms. */
  async function traceWhileDumpWaits(): Promise<{ code: number; began: boolean; took: number }> {
    const pod = await startPod('gate')
    await using dump = await pod.dump()
    await eventually(() => expect(pod.has('ready')).toBe(true))
    let from: number
    {
      await using tracer = await start(await buildApp(), ['trace', String(pod.pid)])
      await eventually(() => expect(tracer.stdout()).toBe('ready\n'))
      process.kill(pod.pid, 'SIGSTOP')
      from = performance.now()
      await pod.put('go')
      await new Promise(resolve => setTimeout(resolve, 200))
      expect(pod.has('begun')).toBe(false)
    }
    return { code: await dump.exit, began: pod.has('begun'), took: performance.now() - from }
  }

  test('a dump does not begin before all stand, nor while somebody traces one of them', async () => {
    let end = await traceWhileDumpWaits()
    // It waits for a second, and a busy machine may take longer.
    while (end.code === 125 && end.took > 950) end = await traceWhileDumpWaits()
    expect(end).toMatchObject({ code: 0, began: true })
  })

  test('a tracer that stays is not waited for', async () => {
    const pod = await startPod('gate', 'go')
    await using tracer = await start(await buildApp(), ['trace', String(pod.pid)])
    await eventually(() => expect(tracer.stdout()).toBe('ready\n'))
    await using dump = await pod.dump()
    expect(await dump.exit).toBe(125)
    expect(dump.stderr()).toBe('gate: a process is being traced\n')
  })

  test.each([
    ['at a gate that nobody opens', [], 'nobody opened the gate'],
    ['before all stand', ['go'], 'not all processes stopped'],
  ])('a dump whose sentinel died does not begin: %s', async (_, files, why) => {
    const pod = await startPod('gate', ...files)
    await using dump = await pod.dump(unheard)
    expect(await dump.exit).toBe(125)
    expect(dump.stderr()).toBe(`gate: ${why}\n`)
  })

  test('nor when they stand for somebody else', async () => {
    const pod = await startPod('gate', 'go')
    process.kill(pod.pid, 'SIGSTOP')
    await using dump = await pod.dump(unheard)
    expect(await dump.exit).toBe(125)
    expect(pod.has('begun')).toBe(false)
  })

  const itself = { asked: false, lines: ['now, there'] }
  test.each([
    ['is known before it is asked', 'once', { asked: true, lines: ['before, there'] }],
    ['is asked anew the next time', 'twice', { asked: true, lines: ['before, there', 'now, there'] }],
    ['is asked by itself by a child', 'child', itself],
    ['is asked when it is not the same', 'for more', itself],
    ['is asked in another network', 'elsewhere', { asked: false, lines: ['now, not there'] }],
  ])('what there is of TCP sockets %s', async (_, how, wanted) => {
    const asks = await buildAsks()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const pod = await startPod('gate', 'go')
    process.kill(pod.pid, 'SIGSTOP')
    await using dump = await pod.dump(heard, [asks, how, String(port)])
    expect(await dump.exit).toBe(0)
    expect(dump.stdout().trim().split('\n')).toEqual(wanted.lines)
    expect(pod.has('asked')).toBe(wanted.asked)
  })

  test('a connection is asked for nothing that will be closed with it, and other sockets are asked', async () => {
    const options = await buildAsks('options')
    const pod = await startPod('gate', 'go')
    process.kill(pod.pid, 'SIGSTOP')
    await using dump = await pod.dump(heard, [options])
    expect(await dump.exit).toBe(0)
    const lines = dump.stdout().trim().split('\n')
    const own = '1 1 20000'
    const model = expect.stringMatching(/: 0 0 \d+, the same$/)
    expect(lines).toEqual([
      `listener: ${own}, the same`,
      model,
      model,
      `unconnected: ${own}, the same`,
      'datagram: -1 1 20000, the same',
      'local: -1 1 20000, the same',
      `other: ${own}, the same`,
    ])
    expect(lines[1]).not.toContain('20000')
  })

  test('without a gate every socket is asked', async () => {
    const options = await buildAsks('options')
    const pod = await startPod()
    await using dump = await pod.dump(heard, [options])
    expect(await dump.exit).toBe(0)
    for (const line of dump.stdout().trim().split('\n').slice(0, 3))
      expect(line).toMatch(/: 1 1 20000, the same, asked$/)
  })

  test('D10.fork-bomb: of more processes than it has room for none is taken for all, and nothing begins', async () => {
    const command = ['sh', '-c', 'sleep 1000 & sleep 1000 & sleep 1000 & wait']
    for (const [limit, code, said] of [
      [3, 125, 'gate: too many processes\n'],
      [4, 0, ''],
    ] as const) {
      const pod = await podOf(command, { PIDS: limit }, ['gate', 'go'])
      const all = await eventually(() => {
        const children = childrenOf(pod.pid)
        if (children.length < 3) throw new Error('not there yet')
        return [pod.pid, ...children]
      })
      for (const pid of all) process.kill(pid, 'SIGSTOP')
      await using dump = await pod.dump()
      expect([await dump.exit, dump.stderr(), pod.has('begun')]).toEqual([code, said, code === 0])
    }
  })

  test('one that is being told to end does not begin any more', async () => {
    const pod = await startPod('gate', 'go', 'begun')
    process.kill(pod.pid, 'SIGSTOP')
    await using dump = await pod.dump()
    expect(await dump.exit).toBe(125)
  })
})
