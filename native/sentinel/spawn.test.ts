// Long because every case needs the same sentinel and programs for it to run.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  cannotUnshare,
  childrenOf,
  orDispose,
  type Started,
  start,
  stateOf,
} from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { cannotCgroup, createCgroup, hierarchies } from './testing/cgroup.ts'
import { processOf, type Sentinel, startSentinel, type Values } from './testing/sentinel.ts'

const FOREVER = 3_600_000
/** The sentinel's PATH leads nowhere. */
const withPath = 'PATH=/usr/bin:/bin; '
/** A count that no other test uses. */
const FORKS = '7'
const why = cannotUnshare ?? cannotCgroup

describe.skipIf(why !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`spawning, %s ${why ?? ''}`, (_, build) => {
  let program: string
  let nsrun: string
  let app: string
  let scratch: string
  beforeAll(async () => {
    program = await build()
    nsrun = await buildProgram('nsrun')
    app = await buildApp()
    scratch = mkdtempSync(join(tmpdir(), 'spawn-'))
  })
  afterAll(() => {
    rmSync(scratch, { recursive: true, force: true })
  })

  const begin = () => startSentinel(program, { args: ['--nsrun', nsrun] })

  /** Starts a container: PID 1 of its own mount and pid namespaces, with its own /proc. */
  async function container(): Promise<Started> {
    const outer = await start('unshare', [
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      app,
      'pause',
    ])
    const pid = await orDispose(
      outer,
      eventually(() => {
        const [first] = childrenOf(outer.pid)
        if (first === undefined || commandOf(first) !== `${app}\0pause\0`) throw new Error('not begun')
        return first
      }),
    )
    return { ...outer, pid }
  }

  let files = 0
  /** Makes a request to run a program in a container, with a log for its output. */
  function request(target: number, args: readonly string[], more: Values = {}) {
    const log = join(scratch, `log-${++files}`)
    const { pid, start: begun } = processOf(target)
    const values = {
      ...{ target: pid, start: begun, ns: 'keep', cgroup: 'stay', deadline: FOREVER, log, arg: args },
      ...more,
    }
    return { values, output: () => readFileSync(log, 'utf8') }
  }

  test('runs a program in the namespaces of the target and tells its end', async () => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const { values, output } = request(target.pid, [
      '/bin/sh',
      '-c',
      `${withPath}readlink /proc/self/ns/pid; echo $0 "$@"; exit 7`,
      'a b',
      '%',
    ])
    const reply = await client.ask('spawn', values)
    expect(reply).toMatchObject({ word: 'exited', values: { code: '7', signal: '0', expired: '0' } })
    expect(output()).toMatch(/\na b %\n$/)
    const killed = await client.ask('spawn', request(target.pid, [app, 'kill', '11']).values)
    expect(killed.values['code']).toBe('139')
  })

  test('opens files as the descriptors that were asked for, and leaves no other open', async () => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const [input, out] = [join(scratch, 'in file:1'), join(scratch, 'out')]
    writeFileSync(input, 'content\n')
    // A descriptor requested with the number of another one, and standard ones.
    const { values, output } = request(
      target.pid,
      [
        '/bin/sh',
        '-c',
        `${withPath}cat; cat <&7; ls /proc/self/fd/200/ >&9; ls /proc/self/fd | tr "\\n" " "`,
      ],
      { fd7: `${input}:r`, fd0: `${input}:r`, fd200: `${scratch}:d`, fd9: `${out}:w` },
    )
    expect((await client.ask('spawn', values)).values['code']).toBe('0')
    // ls itself opens the directory with the next number.
    expect(output()).toBe('content\ncontent\n0 1 2 200 3 7 9 ')
    expect(readFileSync(out, 'utf8').split('\n')).toContain('in file:1')
  })

  test.each([
    [1024, { word: 'exited', values: { code: '0' } }],
    [
      128,
      {
        word: 'failed',
        values: {
          reason: expect.stringMatching(/^open files of the sentinel are limited to 128 .*descriptor 201:/),
        },
      },
    ],
  ])('where files that are open are limited to %d it works, or says so', async (limit, answer) => {
    await using sentinel = await begin()
    await using target = await container()
    execFileSync('prlimit', ['--pid', String(sentinel.pid), `--nofile=${limit}:${limit}`])
    const client = await sentinel.connect()
    const { values } = request(target.pid, ['/bin/true'], { fd200: `${scratch}:d` })
    expect(await client.ask('spawn', values)).toMatchObject(answer)
  })

  test('the environment is what was asked for and a path', async () => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const { values, output } = request(target.pid, ['/usr/bin/env'], { env: ['A=b c', 'D='] })
    await client.ask('spawn', values)
    expect(output().trim().split('\n').sort()).toEqual(['A=b c', 'D=', 'PATH=/proc/none'])
  })

  test.each([
    ['a file that is not there', { fd5: '/nonexistent:r' }, /^\/nonexistent: No such file/],
    ['a directory that is none', { fd5: '/etc/passwd:d' }, /^\/etc\/passwd: Not a directory/],
    ['a log that cannot be', { log: '/nonexistent/log' }, /^\/nonexistent\/log: No such file/],
  ])('%s fails by name', async (_name, more, reason) => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const reply = await client.ask('spawn', request(target.pid, ['/bin/true'], more).values)
    expect([reply.word, reply.values['reason']]).toEqual(['failed', expect.stringMatching(reason)])
  })

  test('an `nsrun` that is not there fails by name', async () => {
    await using sentinel = await startSentinel(program, { args: ['--nsrun', '/nonexistent'] })
    await using target = await container()
    const client = await sentinel.connect()
    const reply = await client.ask('spawn', request(target.pid, ['/bin/true']).values)
    expect(reply).toMatchObject({
      word: 'failed',
      values: { reason: '/nonexistent: No such file or directory' },
    })
  })

  test.each(['/x', ':r', '/x:', '/x:rw', '/x:q'])('a descriptor of %s is refused', async value => {
    await using sentinel = await begin()
    const client = await sentinel.connect()
    const reply = await client.ask('spawn', request(sentinel.pid, ['x'], { fd3: value }).values)
    expect(reply).toMatchObject({ word: 'refused', values: { reason: 'bad-fd' } })
  })

  test('a target with another start time is gone', async () => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const { values } = request(target.pid, ['/bin/true'])
    expect((await client.ask('spawn', { ...values, start: Number(values.start) + 1 })).word).toBe('gone')
  })

  test('joins every cgroup of the target before it runs, or stays in those of the sentinel', async () => {
    const cgroups = hierarchies().map(hierarchy => createCgroup(hierarchy))
    try {
      await using sentinel = await begin()
      await using target = await container()
      const client = await sentinel.connect()
      for (const cgroup of cgroups) cgroup.add(target.pid)
      for (const [cgroup, like] of [
        ['join', target.pid],
        ['stay', sentinel.pid],
      ] as const) {
        const { values, output } = request(target.pid, ['/bin/cat', '/proc/self/cgroup'], {
          cgroup,
          ns: 'keep',
        })
        expect((await client.ask('spawn', values)).values['code']).toBe('0')
        expect(output()).toBe(readFileSync(`/proc/${like}/cgroup`, 'utf8'))
      }
    } finally {
      for (const cgroup of cgroups) await eventually(() => cgroup[Symbol.dispose]())
    }
  })

  /** Returns the pids, in this namespace, of all processes that `app tree` started. */
  function treeOf(): readonly number[] {
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
      .filter(pid => commandOf(pid) === `${app}\0tree\0${scratch}\0` && stateOf(pid) !== 'Z')
  }

  const tree = () => [app, 'tree', scratch]

  /** True if all five are there, and no process that is about to end is one of them. */
  const isWhole = (pids: readonly number[]) => pids.length === 5 && pids.map(nameOf).includes('whole')

  async function untilTree(): Promise<void> {
    await eventually(() => expect(isWhole(treeOf())).toBe(true))
  }

  /** Starts a tree and sees it whole before its deadline. On a busy machine it takes a later deadline. */
  async function beforeDeadline<T>(begin: (deadline: number) => T): Promise<Awaited<T>> {
    for (let deadline = 1_000; ; deadline *= 2) {
      const begun = await begin(deadline)
      const over = performance.now() + deadline
      while (performance.now() < over) {
        if (isWhole(treeOf())) return begun
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      await eventually(() => expect(treeOf()).toEqual([]))
    }
  }

  const nothingLeft = (sentinel: Sentinel) =>
    eventually(() => expect([treeOf(), childrenOf(sentinel.pid)]).toEqual([[], []]))

  test('at the deadline the whole tree dies: grandchildren, orphans, those with a session of their own', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    const { asked } = await beforeDeadline(deadline => ({
      asked: client.ask('spawn', request(target.pid, tree(), { deadline }).values),
    }))
    expect(await asked).toMatchObject({ word: 'exited', values: { code: '137', expired: '1' } })
    expect(treeOf()).toEqual([])
    await nothingLeft(sentinel)
  })

  test('in a container, whose first process adopts orphans, the whole tree dies as well', async () => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const { asked } = await beforeDeadline(deadline => ({
      asked: client.ask('spawn', request(target.pid, tree(), { deadline }).values),
    }))
    expect((await asked).values['expired']).toBe('1')
    expect(treeOf()).toEqual([])
    await nothingLeft(sentinel)
    // Nor a zombie for the container's first process to reap.
    expect(childrenOf(target.pid)).toEqual([])
  })

  test('kill-spawn ends it before', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    const { id, reply } = client.begin('spawn', request(target.pid, tree()).values)
    await untilTree()
    const other = await sentinel.connect()
    expect((await other.ask('kill-spawn', { spawn: id })).values['reason']).toBe('unknown-spawn')
    expect((await client.ask('kill-spawn', { spawn: id })).word).toBe('ok')
    expect(await reply).toMatchObject({ word: 'exited', values: { code: '137', expired: '0' } })
    await nothingLeft(sentinel)
  })

  /** Starts a dump that is past its gate, in `work`; it lasts until `end` is called. */
  const dumping = async (target: number, deadline: number) => {
    const work = mkdtempSync(join(scratch, 'work-'))
    for (const name of ['gate', 'begun']) writeFileSync(join(work, name), '')
    const log = join(work, 'started')
    const over = join(work, 'over')
    const script = `${withPath}: > ${log}; until [ -e ${over} ]; do sleep 0.01; done; exit 42`
    const { values } = request(target, ['/bin/sh', '-c', script], {
      ...{ deadline, during: 'dump', fd202: `${work}:d` },
    })
    const begun = () => eventually(() => readFileSync(log))
    return { values, begun, end: () => writeFileSync(over, '') }
  }

  test.each(['kill-spawn', 'the end of the client'])(
    'a dump past its gate takes its time, whatever asks for its end: %s',
    async how => {
      await using sentinel = await begin()
      await using target = await container()
      const client = await sentinel.connect()
      const { values, begun, end } = await dumping(target.pid, FOREVER)
      const { id, reply } = client.begin('spawn', values)
      await begun()
      if (how === 'kill-spawn') await client.ask('kill-spawn', { spawn: id })
      else await client.close()
      // The sentinel gives others a second.
      await new Promise(resolve => setTimeout(resolve, 2_000))
      expect(childrenOf(sentinel.pid)).toHaveLength(1)
      end()
      if (how === 'kill-spawn') expect((await reply).values).toMatchObject({ code: '42', signal: '0' })
      await nothingLeft(sentinel)
    },
  )

  test('a dump past its gate that is to end ends at its deadline at the latest', async () => {
    await using sentinel = await begin()
    await using target = await container()
    const client = await sentinel.connect()
    const { values, begun } = await dumping(target.pid, 4_000)
    const { id, reply } = client.begin('spawn', values)
    await begun()
    await client.ask('kill-spawn', { spawn: id })
    expect((await reply).values).toMatchObject({ signal: '9' })
    await nothingLeft(sentinel)
  })

  test('what is left when the program ends goes with it', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    const script = `${withPath}${app} tree ${scratch} & until [ "$(pgrep -cf '^${app} tree ${scratch}')" = 5 ]; do :; done; exit 3`
    const reply = await client.ask('spawn', request(target.pid, ['/bin/sh', '-c', script]).values)
    expect(reply.values['code']).toBe('3')
    await nothingLeft(sentinel)
  })

  test('a client that goes away takes with it what it has started', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    const next = await sentinel.connect()
    client.begin('spawn', request(target.pid, tree(), { deadline: 600_000 }).values)
    await untilTree()
    await client.close()
    await nothingLeft(sentinel)
    await next.ask('hello')
  })

  test('the deadline holds when the sentinel itself is killed', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    await beforeDeadline(deadline => {
      client.begin('spawn', request(target.pid, tree(), { deadline }).values)
    })
    process.kill(sentinel.pid, 'SIGKILL')
    await eventually(() => expect(treeOf()).toEqual([]))
    await sentinel.exit
  })

  test('whoever kills what stands between kills all of it', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    const asked = client.ask('spawn', request(target.pid, tree()).values)
    await untilTree()
    const [supervisor] = childrenOf(sentinel.pid)
    if (supervisor === undefined) throw new Error('nobody supervises')
    process.kill(supervisor, 'SIGKILL')
    expect((await asked).values).toMatchObject({ code: '137', signal: '9' })
    await nothingLeft(sentinel)
    expect((await client.ask('hello')).word).toBe('ok')
  })

  test('SIGTERM waits for what runs, a second one ends it', async () => {
    await using sentinel = await begin()
    await using target = await start(app, ['pause'])
    const client = await sentinel.connect()
    const first = client.ask('spawn', request(target.pid, tree()).values)
    await untilTree()
    process.kill(sentinel.pid, 'SIGTERM')
    await eventually(() => expect(sentinel.stderr()).toContain('ending'))
    expect((await client.ask('spawn', request(target.pid, tree()).values)).values['reason']).toBe('ending')
    await expect(sentinel.connect()).rejects.toThrow(/ENOENT/)
    expect(treeOf()).toHaveLength(5)
    process.kill(sentinel.pid, 'SIGINT')
    expect((await first).values).toMatchObject({ code: '137' })
    expect(await sentinel.exit).toBe(0)
    expect(treeOf()).toEqual([])
  })

  describe('detached', () => {
    const detached = (target: number, more: Values = {}) =>
      request(target, tree(), { detach: 1, ...more }).values
    const ended = async (supervisor: number) => {
      await eventually(() => expect([treeOf(), stateOf(supervisor) ?? 'Z']).toEqual([[], 'Z']))
    }

    test('is told at once, and outlives who asked for it and the sentinel', async () => {
      await using sentinel = await begin()
      await using target = await start(app, ['pause'])
      const client = await sentinel.connect()
      const reply = await client.ask('spawn', detached(target.pid))
      const supervisor = Number(reply.values['pid'])
      expect(reply).toMatchObject({ word: 'started', values: { start: String(processOf(supervisor).start) } })
      await untilTree()
      await client.close()
      const next = await sentinel.connect()
      await next.ask('hello')
      process.kill(sentinel.pid, 'SIGTERM')
      await eventually(() => expect(stateOf(sentinel.pid) ?? 'Z').toBe('Z'))
      expect(treeOf()).toHaveLength(5)
      process.kill(supervisor, 'SIGTERM')
      await ended(supervisor)
      expect(await sentinel.exit).toBe(0)
    })

    test('keeps its deadline, and nothing is left of it', async () => {
      await using sentinel = await begin()
      await using target = await start(app, ['pause'])
      const client = await sentinel.connect()
      const reply = await beforeDeadline(deadline => client.ask('spawn', detached(target.pid, { deadline })))
      await ended(Number(reply.values['pid']))
      await nothingLeft(sentinel)
    })

    test('goes on without its supervisor until somebody ends it', async () => {
      await using sentinel = await begin()
      await using target = await start(app, ['pause'])
      const client = await sentinel.connect()
      const supervisor = Number((await client.ask('spawn', detached(target.pid))).values['pid'])
      await untilTree()
      process.kill(supervisor, 'SIGKILL')
      await eventually(() => expect(sentinel.stderr()).toContain('a supervisor was killed'))
      expect(treeOf()).toHaveLength(5)
      for (const pid of treeOf()) process.kill(pid, 'SIGKILL')
      await nothingLeft(sentinel)
    })

    test('by another word than 1 is refused', async () => {
      await using sentinel = await begin()
      const client = await sentinel.connect()
      const reply = await client.ask('spawn', detached(sentinel.pid, { detach: 0 }))
      expect(reply).toMatchObject({ word: 'refused', values: { reason: 'bad-detach' } })
    })
  })

  describe('trees', () => {
    test('tree-kill takes everybody below and waits until they are gone', async () => {
      await using sentinel = await begin()
      await using parent = await start(app, ['tree', scratch])
      await untilTree()
      const client = await sentinel.connect()
      const reply = await client.ask('tree-kill', processOf(parent.pid))
      // Its two orphans have another parent by now.
      expect(reply).toMatchObject({ word: 'gone', values: { count: '3' } })
      for (const pid of treeOf()) process.kill(pid, 'SIGKILL')
      expect(stateOf(parent.pid) ?? 'Z').toBe('Z')
      expect((await client.ask('hello')).word).toBe('ok')
    })

    test('who forks all the time does not get away', async () => {
      await using sentinel = await begin()
      const client = await sentinel.connect()
      const forkers = () =>
        readdirSync('/proc').filter(
          name =>
            /^\d+$/.test(name) &&
            commandOf(Number(name)) === `${app}\0forks\0${FORKS}\0` &&
            stateOf(Number(name)) !== 'Z',
        )
      for (let round = 0; round < 20; round++) {
        const parent = await start(app, ['forks', FORKS])
        await eventually(() => expect(parent.stdout()).toBe('ready\n'))
        expect((await client.ask('tree-kill', processOf(parent.pid))).word).toBe('gone')
        expect(forkers()).toEqual([])
        await parent.exit
      }
    })

    test('a stopped tree dies as well, one in a pid namespace of its own too', async () => {
      await using sentinel = await begin()
      await using target = await container()
      const client = await sentinel.connect()
      process.kill(target.pid, 'SIGSTOP')
      expect(await client.ask('tree-kill', processOf(target.pid))).toMatchObject({ word: 'gone' })
    })

    test('tree-continue wakes everybody', async () => {
      await using sentinel = await begin()
      await using parent = await start(app, ['tree', scratch])
      await untilTree()
      const all = [parent.pid, ...childrenOf(parent.pid).flatMap(pid => [pid, ...childrenOf(pid)])]
      for (const pid of all) process.kill(pid, 'SIGSTOP')
      await eventually(() => expect(all.map(stateOf)).toEqual(all.map(() => 'T')))
      const client = await sentinel.connect()
      const { pid, start: begun } = processOf(parent.pid)
      expect((await client.ask('tree-continue', { pid, start: Number(begun) + 1 })).word).toBe('gone')
      expect(all.map(stateOf)).toEqual(all.map(() => 'T'))
      const reply = await client.ask('tree-continue', { pid, start: begun })
      expect(reply).toMatchObject({ word: 'continued', values: { count: String(all.length) } })
      expect(all.map(stateOf)).not.toContain('T')
      await client.ask('tree-kill', processOf(parent.pid))
      for (const left of treeOf()) process.kill(left, 'SIGKILL')
    })

    test('the sentinel and those above it are refused', async () => {
      await using sentinel = await begin()
      const client = await sentinel.connect()
      for (const pid of [sentinel.pid, process.pid]) {
        const reply = await client.ask('tree-kill', processOf(pid))
        expect(reply).toMatchObject({ word: 'refused', values: { reason: 'own-tree' } })
      }
    })

    test('another start time is gone, and nobody is hurt', async () => {
      await using sentinel = await begin()
      await using other = await start(app, ['pause'])
      const client = await sentinel.connect()
      const { pid, start: begun } = processOf(other.pid)
      expect((await client.ask('tree-kill', { pid, start: Number(begun) + 1 })).word).toBe('gone')
      // The process may not have reached its pause yet.
      expect(['R', 'S']).toContain(stateOf(pid))
    })
  })
})

function commandOf(pid: number): string {
  return textOf(pid, 'cmdline')
}

function nameOf(pid: number): string {
  return textOf(pid, 'comm').trim()
}

function textOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // The process is gone.
    return ''
  }
}
