// Long because every order runs against one real PID 1, as built for release and for tests.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../test/support/eventually.ts'
import { buildWaker } from './build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { type Hold, orderHead, startHold, untilHolding } from './testing/hold.ts'
import { connect, exchange } from './testing/peer.ts'
import {
  cannotUnshare,
  catchableSignals,
  childrenOf,
  inNamespaceOf,
  start,
  stateOf,
  statusField,
} from './testing/process.ts'

const ending = [2, 3, 15]
const SIGCHLD = 17

describe.skipIf(cannotUnshare !== undefined).each([
  ['release build', () => buildWaker()],
  ['sanitized build', () => buildSanitized('waker')],
])(`hold as PID 1, %s ${cannotUnshare ?? ''}`, (_, build) => {
  const asPid1 = { pidNamespace: true } as const
  let waker: string
  let app: string
  beforeAll(async () => {
    waker = await build()
    app = await buildApp()
  })

  /** Leaves an orphan in the namespace of a hold and resolves with its pid there. */
  async function orphanIn(hold: Hold, ...command: readonly string[]): Promise<number> {
    const said = await inNamespaceOf(hold.pid, [app, 'orphan', ...command])
    return Number(said.match(/^orphan (\d+)$/m)?.[1])
  }

  /**
   * Resolves with the pid, in this namespace, of the child with that pid inside, once it is a child of hold.
   */
  function childOf(hold: Hold, inside: number): Promise<number> {
    return eventually(() => {
      const found = childrenOf(hold.pid).find(
        pid => statusField(pid, 'NSpid')?.split('\t').at(-1) === String(inside),
      )
      if (found === undefined) throw new Error(`no child ${inside}`)
      return found
    })
  }

  /** Starts an orphan and waits until it handles signals. */
  async function readyOrphanIn(hold: Hold, mode: 'signals' | 'stubborn') {
    const inside = await orphanIn(hold, mode)
    const outside = await childOf(hold, inside)
    await eventually(() => expect(statusField(outside, 'SigBlk')).toMatch(/^f{6}/))
    return { inside, outside }
  }

  /** Starts an app that leaves an orphan. Returns the app's pid inside, and both pids in this namespace. */
  async function startWithOrphan(hold: Hold) {
    await hold.order('start')
    const children = await eventually(() => {
      const both = childrenOf(hold.pid)
      expect(both).toHaveLength(2)
      return both
    })
    const pid = Number((await hold.order('state')).split(' ')[1])
    const started = await childOf(hold, pid)
    const orphan = children.find(child => child !== started)
    if (orphan === undefined) throw new Error('no orphan')
    return { pid, started, orphan }
  }

  describe('without an app', () => {
    test.each(ending)('signal %i ends it with 128 + the signal', async number => {
      await using hold = await start(waker, ['hold', app, 'exit', '0'], asPid1)
      await untilHolding(hold)
      process.kill(hold.pid, number)
      expect(await hold.exit).toBe(128 + number)
    })

    test('every other signal is of no effect', async () => {
      await using hold = await startHold(waker, [app, 'exit', '0'], asPid1)
      for (const number of catchableSignals) if (!ending.includes(number)) process.kill(hold.pid, number)
      expect(await hold.order('state')).toBe('holding 0')
    })

    test.each([28, 37, 64])("--stop-signal %i, the image's own, ends it too", async number => {
      await using hold = await start(waker, ['hold', '--stop-signal', String(number), app], asPid1)
      await untilHolding(hold)
      process.kill(hold.pid, number)
      expect(await hold.exit).toBe(128 + number)
    })

    test('SIGKILL ends it', async () => {
      await using hold = await startHold(waker, [app], asPid1)
      process.kill(hold.pid, 'SIGKILL')
      expect(await hold.exit).toBe(137)
    })

    test('it runs nothing and reaps what is orphaned', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      expect(await orphanIn(hold, 'exit', '3')).toBeGreaterThan(1)
      await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
      expect(await hold.order('state')).toBe('holding 0')
      expect(hold.stdout() + hold.stderr()).toBe('')
    })

    test('one SIGCHLD may stand for several deaths', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const orphans = [await readyOrphanIn(hold, 'stubborn'), await readyOrphanIn(hold, 'stubborn')]
      process.kill(hold.pid, 'SIGSTOP')
      await eventually(() => expect(stateOf(hold.pid)).toBe('T'))
      for (const { outside } of orphans) process.kill(outside, 'SIGKILL')
      await eventually(() => expect(orphans.map(({ outside }) => stateOf(outside))).toEqual(['Z', 'Z']))
      process.kill(hold.pid, 'SIGCONT')
      await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
    })
  })

  describe('commands beside the app', () => {
    const run = (hold: Hold, ...words: readonly string[]) => {
      const payload = words.map(word => `${word}\0`).join('')
      return hold.order(`run ${payload.length}`, payload)
    }
    const pidOf = (reply: string) => Number(/^started (\d+)$/.exec(reply)?.[1])
    const ended = (hold: Hold, pid: number) =>
      eventually(async () => {
        const reply = await hold.order(`wait ${pid}`)
        if (!reply.startsWith('died ')) throw new Error(reply)
        return reply
      })

    test('D6.exec-probes: they are run with its rights and not into its log, and their ends are not its end', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      await hold.order('start')
      await eventually(() => expect(hold.stdout()).toBe('ready\n'))
      for (const code of [0, 3]) {
        const pid = pidOf(await run(hold, 'sh', '-c', `echo noise; echo noise >&2; exit ${code}`))
        expect(await ended(hold, pid)).toBe(`died ${code}`)
      }
      expect(await run(hold, '/nonexistent')).toBe('failed 2')
      expect(await hold.order('state')).toMatch(/^running/)
      expect(hold.stdout() + hold.stderr()).toBe('ready\n')
    })

    test('words are bytes: control characters reach the command as they are, and no line in a word is an order', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      await hold.order('start')
      const directory = mkdtempSync(join(tmpdir(), 'hold-words-'))
      onTestFinished(() => rmSync(directory, { recursive: true }))
      const controls = String.fromCharCode(...Array.from({ length: 31 }, (_, at) => at + 1), 127)
      for (const word of [controls, '\nunderstudy/1 end 0\nunderstudy/1 end 0\n', '\r\n\x1b[2J']) {
        const file = join(directory, 'word')
        const pid = pidOf(await run(hold, 'sh', '-c', `printf %s "$1" > ${file}`, 'sh', word))
        expect(await ended(hold, pid)).toBe('died 0')
        expect(readFileSync(file, 'latin1')).toBe(word)
      }
      expect(await hold.order('state')).toMatch(/^running/)
    })

    test('none is run where there is no app', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      expect(await run(hold, 'sh', '-c', 'exit 0')).toBe('holding 0')
      expect(await hold.order('run 0')).toBe('malformed 0')
    })

    test('one that lasts is ended with all of its group, and nothing else is', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      const appPid = pidOf(await hold.order('start'))
      const pid = pidOf(await run(hold, 'sh', '-c', 'sleep 1000 & wait'))
      expect(await hold.order(`wait ${pid}`)).toBe(`running ${pid}`)
      expect(await hold.order(`kill ${appPid}`)).toBe(`unknown ${appPid}`)
      await eventually(() => expect(childrenOf(hold.pid).flatMap(childrenOf)).toHaveLength(1))
      const [grandchild = 0] = childrenOf(hold.pid).flatMap(childrenOf)
      expect(await hold.order(`kill ${pid}`)).toBe(`killed ${pid}`)
      expect(await ended(hold, pid)).toBe('died 137')
      await eventually(() => expect(stateOf(grandchild)).toBeUndefined())
      expect(await hold.order(`kill ${pid}`)).toBe(`unknown ${pid}`)
      expect(await hold.order('state')).toBe(`running ${appPid}`)
    })

    test('D6.prestop: if-app runs a command when there is an app, and only then', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      const directory = hold.socket.slice(0, -'/hold.sock'.length)
      const ifApp = () => inNamespaceOf(hold.pid, [waker, 'if-app', '--dir', directory, '--', 'echo', 'bye'])
      expect(await ifApp()).toBe('')
      await hold.order('start')
      expect(await ifApp()).toBe('bye\n')
    })
  })

  describe('start', () => {
    test('runs the command as the app, a clean process with a session of its own', async () => {
      await using hold = await startHold(waker, [app, 'show', 'one', '', 'two words'], asPid1)
      expect(await hold.order('start')).toMatch(/^started \d+$/)
      expect(await hold.exit).toBe(0)
      expect(hold.stdout().split('\n')).toEqual([
        ...['argument one', 'argument ', 'argument two words', 'leader 1'],
        ...['SigBlk:\t0000000000000000', 'SigIgn:\t0000000000000000'],
        ...['descriptor 0', 'descriptor 1', 'descriptor 2', ''],
      ])
    })

    test("puts the order's words in front of the command", async () => {
      await using hold = await startHold(waker, ['three', 'four'], asPid1)
      const entrypoint = `${app}\0show\0one two\0\0`
      expect(await hold.order(`start ${entrypoint.length}`, entrypoint)).toMatch(/^started \d+$/)
      expect(await hold.exit).toBe(0)
      expect(hold.stdout()).toMatch(/^argument one two\nargument \nargument three\nargument four\nleader 1\n/)
    })

    test('looks the program up in PATH', async () => {
      await using hold = await startHold(waker, ['sh', '-c', 'exit 5'], asPid1)
      expect(await hold.order('start')).toMatch(/^started/)
      expect(await hold.exit).toBe(5)
    })

    test('a program that cannot be run leaves it holding', async () => {
      await using hold = await startHold(waker, ['/nonexistent'], asPid1)
      expect(await hold.order('start')).toBe('failed 2')
      expect(await hold.order('start 5', '/etc\0')).toBe('failed 13')
      expect(await hold.order('state')).toBe('holding 0')
      await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
    })

    test('nothing to run is told of', async () => {
      await using hold = await startHold(waker, [], asPid1)
      expect(await hold.order('start')).toBe('failed 22')
    })

    test('a second start is refused', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      const first = await hold.order('start')
      const pid = first.replace('started ', '')
      expect(await hold.order('start')).toBe(`busy ${pid}`)
      expect(await hold.order('state')).toBe(`running ${pid}`)
      expect(childrenOf(hold.pid)).toHaveLength(1)
    })

    test.each([0, 1, 7, 127, 255])("exit code %i of the app is hold's", async code => {
      await using hold = await startHold(waker, [app, 'exit', String(code)], asPid1)
      await hold.order('start')
      expect(await hold.exit).toBe(code)
    })

    test.each([1, 2, 6, 9, 10, 11, 13, 14, 15, 40])(
      'an app that dies of signal %i ends it with 128 + the signal',
      async number => {
        await using hold = await startHold(waker, [app, 'kill', String(number)], asPid1)
        await hold.order('start')
        expect(await hold.exit).toBe(128 + number)
      },
    )

    test('D6.hold-life: every signal that can be taken reaches the app', async () => {
      await using hold = await startHold(waker, [app, 'stubborn'], asPid1)
      await hold.order('start')
      await eventually(() => expect(hold.stdout()).toBe('ready\n'))
      const forwarded = catchableSignals.filter(number => number !== SIGCHLD)
      for (const number of forwarded) {
        process.kill(hold.pid, number)
        await eventually(() => expect(hold.stdout().split('\n')).toContain(`signal ${number}`))
      }
      expect(hold.stdout()).toBe(`ready\n${forwarded.map(number => `signal ${number}\n`).join('')}`)
      expect(await hold.order('state')).toMatch(/^running/)
    })

    test('the app decides what SIGTERM means', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      await hold.order('start')
      await eventually(() => expect(hold.stdout()).toBe('ready\n'))
      process.kill(hold.pid, 'SIGTERM')
      expect(await hold.exit).toBe(42)
      expect(hold.stdout()).toBe('ready\nsignal 15\n')
    })

    test('SIGKILL of hold takes the app along', async () => {
      await using hold = await startHold(waker, [app, 'stubborn'], asPid1)
      await hold.order('start')
      const [child] = childrenOf(hold.pid)
      process.kill(hold.pid, 'SIGKILL')
      expect(await hold.exit).toBe(137)
      expect(child === undefined ? 'never ran' : stateOf(child)).toBeUndefined()
    })

    test('orphans of the app are reaped, and their end is not the end', async () => {
      await using hold = await startHold(waker, [app, 'parent', 'signals'], asPid1)
      const { pid, orphan } = await startWithOrphan(hold)
      process.kill(orphan, 'SIGKILL')
      await eventually(() => expect(stateOf(orphan)).toBeUndefined())
      expect(await hold.order('state')).toBe(`running ${pid}`)
    })

    test('D7.endpoints: the container stays for a moment after its app, and nothing else runs in it', async () => {
      await using hold = await startHold(waker, [app, 'parent', 'signals'], asPid1)
      const { started, orphan } = await startWithOrphan(hold)
      process.kill(started, 'SIGKILL')
      await eventually(() => expect(['Z', undefined]).toContain(stateOf(orphan)))
      // It takes no order any more, and a runtime can end it at once.
      expect(existsSync(hold.socket)).toBe(false)
      expect(stateOf(hold.pid)).toBe('S')
      process.kill(hold.pid, 'SIGTERM')
      expect(await hold.exit).toBe(137)
    })

    test('D6.hold-order: a container that starts again only holds, until it is told anew', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'hold-'))
      try {
        const first = await startHold(waker, [app, 'signals'], { ...asPid1, directory })
        await first.order('start')
        process.kill(first.pid, 'SIGKILL')
        await first.exit
        expect(statSync(first.socket).isSocket()).toBe(true)
        await using second = await startHold(waker, [app, 'signals'], { ...asPid1, directory })
        expect(await second.order('state')).toBe('holding 0')
        expect(childrenOf(second.pid)).toEqual([])
        expect(await second.order('start')).toMatch(/^started/)
      } finally {
        rmSync(directory, { recursive: true })
      }
    })
  })

  describe('adopt', () => {
    test('makes an orphan the app: its signals and its end', async () => {
      await using hold = await startHold(waker, [app, 'exit', '1'], asPid1)
      const { inside } = await readyOrphanIn(hold, 'signals')
      expect(await hold.order(`adopt ${inside}`)).toBe(`adopted ${inside}`)
      expect(await hold.order(`adopt ${inside}`)).toBe(`adopted ${inside}`)
      expect(await hold.order('state')).toBe(`running ${inside}`)
      process.kill(hold.pid, 'SIGTERM')
      expect(await hold.exit).toBe(42)
    })

    test('D6.hold-life: a death by signal is 128 + the signal', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const { inside, outside } = await readyOrphanIn(hold, 'stubborn')
      await hold.order(`adopt ${inside}`)
      process.kill(outside, 'SIGKILL')
      expect(await hold.exit).toBe(137)
    })

    test('who has died before is reported and not taken for the end', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const inside = await orphanIn(hold, 'exit', '9')
      await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
      expect(await hold.order(`adopt ${inside}`)).toBe('died 9')
      const killed = await orphanIn(hold, 'kill', '6')
      await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
      expect(await hold.order(`adopt ${killed}`)).toBe('died 134')
      expect(await hold.order('state')).toBe('holding 0')
    })

    test('an end that nobody has reaped yet is known', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const { inside, outside } = await readyOrphanIn(hold, 'stubborn')
      // Hold is stopped, so it finds the order and the SIGCHLD together when it resumes.
      process.kill(hold.pid, 'SIGSTOP')
      process.kill(outside, 'SIGKILL')
      await eventually(() => expect(stateOf(outside)).toBe('Z'))
      const reply = hold.order(`adopt ${inside}`)
      process.kill(hold.pid, 'SIGCONT')
      expect(await reply).toBe('died 137')
      expect(await hold.order('state')).toBe('holding 0')
    })

    test('a number that an earlier child had is that of the living one', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const restoreAs500 = async (mode: string) => {
        // The process must outlive this shell, which would reap it instead of hold.
        const script = `echo 499 > /proc/sys/kernel/ns_last_pid; { sleep 0.1; exec ${app} ${mode}; } > /dev/null & echo $!`
        expect(await inNamespaceOf(hold.pid, ['sh', '-c', script])).toBe('500\n')
      }
      await restoreAs500('exit 9')
      await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
      expect(await hold.order('adopt 500')).toBe('died 9')
      await restoreAs500('signals')
      expect(await hold.order('adopt 500')).toBe('adopted 500')
    })

    test('what is no child is refused', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      for (const pid of [0, 1, 4194304]) expect(await hold.order(`adopt ${pid}`)).toBe(`unknown ${pid}`)
      const pid = (await hold.order('start')).split(' ')[1]
      expect(await hold.order('adopt 4194304')).toBe(`busy ${pid}`)
    })

    test('only the app of the latest adoption ends it: release, refresh, adopt', async () => {
      await using hold = await startHold(waker, [], asPid1)
      expect(await hold.order('release')).toBe('released 0')
      for (let refresh = 0; refresh < 3; refresh++) {
        const clone = await readyOrphanIn(hold, 'stubborn')
        expect(await hold.order(`adopt ${clone.inside}`)).toBe(`adopted ${clone.inside}`)
        expect(await hold.order('release')).toBe(`released ${clone.inside}`)
        process.kill(clone.outside, 'SIGKILL')
        await eventually(() => expect(childrenOf(hold.pid)).toEqual([]))
      }
      const last = await readyOrphanIn(hold, 'signals')
      expect(await hold.order(`adopt ${last.inside}`)).toBe(`adopted ${last.inside}`)
      process.kill(hold.pid, 'SIGTERM')
      expect(await hold.exit).toBe(42)
    })

    test('a stopped clone that is not adopted does not delay the end', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const { outside } = await readyOrphanIn(hold, 'stubborn')
      process.kill(outside, 'SIGSTOP')
      await eventually(() => expect(stateOf(outside)).toBe('T'))
      process.kill(hold.pid, 'SIGTERM')
      expect(await hold.exit).toBe(143)
      expect(stateOf(outside)).toBeUndefined()
    })
  })

  describe('orders', () => {
    test.each([0, 3, 137, 255])('end %i', async code => {
      await using hold = await startHold(waker, [app, 'stubborn'], asPid1)
      await hold.order('start')
      expect(await hold.order(`end ${code}`)).toBe(`ending ${code}`)
      expect(await hold.exit).toBe(code)
    })

    test('whatever is no order is refused and does nothing', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      const table = [
        ...[
          '\n',
          'understudy/1 \n',
          'understudy/2 state\n',
          'understudy/1 state \n',
          'understudy/1 state 1\n',
        ],
        ...[
          'understudy/1 stat\n',
          'understudy/1 statex\n',
          'understudy/1 start -1\n',
          'understudy/1 start 32769\n',
        ],
        ...[
          'understudy/1 start \n',
          'understudy/1 start\nx',
          'understudy/1 start 1\nx',
          'understudy/1 start 2\n\0x',
        ],
        ...[
          'understudy/1 start 2\nx\0y',
          'understudy/1 start 2\n\0\0',
          `understudy/1 start 257\n${'x\0'.repeat(128)}x`,
        ],
        ...[`understudy/1 start 514\n${'x\0'.repeat(257)}`, 'understudy/1 adopt\n', 'understudy/1 adopt x\n'],
        ...['understudy/1 adopt 4194305\n', 'understudy/1 adopt 007\n', 'understudy/1 adopt +7\n'],
        ...['understudy/1 adopt 99999999999999999999\n', 'understudy/1 end\n', 'understudy/1 end 256\n'],
        ...['understudy/1 state\nunderstudy/1 start\n', 'understudy/1 release 1\n', 'a'.repeat(128)],
      ]
      for (const text of table) {
        const reply = await exchange({ path: hold.socket }, text)
        expect(reply, JSON.stringify(text)).toMatch(/^understudy\/1 malformed 0 \d{19}\n$/)
      }
      expect(await hold.order('state')).toBe('holding 0')
      expect(childrenOf(hold.pid)).toEqual([])
    })

    test('an order cut short by its giver is none', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      for (const part of ['start', 'start 9\n/bin/']) {
        const peer = await connect({ path: hold.socket })
        peer.socket.end(`${orderHead(dirname(hold.socket))}${part}`)
        expect(await peer.reply).toMatch(/malformed/)
      }
      expect(await hold.order('state')).toBe('holding 0')
    })

    test('an order in single bytes is the same order', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const peer = await connect({ path: hold.socket })
      const words = `${app}\0exit\x0011\0`
      for (const byte of `${orderHead(dirname(hold.socket))}start ${words.length}\n${words}`)
        await peer.send(byte)
      expect(await peer.reply).toMatch(/started/)
      expect(await hold.exit).toBe(11)
    })

    test('the longest order fits', async () => {
      await using hold = await startHold(waker, [], asPid1)
      const words = `${app}\0show\0${'y'.repeat(32768 - app.length - 7)}\0`
      expect(await hold.order('start 32768', words)).toMatch(/^started/)
      expect(await hold.exit).toBe(0)
      expect(hold.stdout()).toContain(`argument ${'y'.repeat(32768 - app.length - 7)}\n`)
    })

    test('peers that say nothing hold up neither orders nor the end', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      const silent = await Promise.all(Array.from({ length: 20 }, () => connect({ path: hold.socket })))
      expect(await hold.order('state')).toBe('holding 0')
      process.kill(hold.pid, 'SIGTERM')
      expect(await hold.exit).toBe(143)
      for (const peer of silent) peer.socket.destroy()
    })

    test('a process of the container may give none', async () => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      for (const text of ['start', 'end 0', 'release', 'run 3', 'wait 2', 'kill 2']) {
        expect(await inNamespaceOf(hold.pid, [app, 'order', hold.socket, `understudy/1 ${text}`])).toMatch(
          /^understudy\/1 denied 0 \d{19}\n$/,
        )
      }
      expect(await hold.order('state')).toBe('holding 0')
      // But every process may ask whether there is an app.
      expect(await inNamespaceOf(hold.pid, [app, 'order', hold.socket, 'understudy/1 state'])).toMatch(
        /^understudy\/1 holding 0 \d{19}\n$/,
      )
    })

    test.each(['root', 'another user'])('another container of the pod may give none, as %s', async user => {
      await using hold = await startHold(waker, [app, 'signals'], asPid1)
      await using sibling = await startHold(waker, [], asPid1)
      const directory = dirname(hold.socket)
      const [uid, key] = [user === 'root' ? 0 : 1000, orderHead(directory)]
      // Makes the socket reachable; normally each container has a directory of its own.
      chmodSync(directory, 0o755)
      chmodSync(hold.socket, 0o666)
      const tell = (text: string) =>
        inNamespaceOf(sibling.pid, [app, 'order', hold.socket, text, String(uid)])
      const orders = ['start', 'adopt 2', 'end 7', 'release', 'wait 2', 'kill 2']
      for (const head of ['understudy/1 ', `understudy/2 ${'0'.repeat(32)} `])
        for (const order of orders)
          expect(await tell(`${head}${order}`), order).toMatch(/^understudy\/1 denied 0 \d{19}\n$/)
      // A complete request with strings, from here: this process is outside and root as well.
      for (const verb of ['start', 'run'])
        expect(await exchange({ path: hold.socket }, `understudy/1 ${verb} 4\nabc\0`)).toMatch(/ denied 0 /)
      if (user !== 'root')
        for (const order of orders)
          expect(await tell(`${key}${order}`), order).toMatch(/^understudy\/1 denied 0 \d{19}\n$/)
      expect(await hold.order('state')).toBe('holding 0')
      expect(childrenOf(hold.pid)).toEqual([])
    })

    test('the key is for its owner alone, is another one with each start, and goes with it', async () => {
      const keys = []
      for (let i = 0; i < 2; i++) {
        await using hold = await startHold(waker, [], asPid1)
        const file = join(dirname(hold.socket), 'hold.key')
        expect(statSync(file).mode & 0o777).toBe(0o400)
        keys.push(orderHead(dirname(hold.socket)))
        expect(keys[i]).toMatch(/^understudy\/2 [0-9a-f]{32} $/)
        expect(await hold.order('end 3')).toBe('ending 3')
        await hold.exit
        expect(() => statSync(file)).toThrow('ENOENT')
      }
      expect(keys[0]).not.toBe(keys[1])
    })

    test('the socket is for its owner alone', async () => {
      await using hold = await startHold(waker, [], asPid1)
      expect(statSync(hold.socket).mode & 0o777).toBe(0o600)
      process.kill(hold.pid, 'SIGTERM')
      await hold.exit
      expect(() => statSync(hold.socket)).toThrow('ENOENT')
    })
  })
})

describe('hold as an ordinary process', () => {
  let waker: string
  let app: string
  beforeAll(async () => {
    waker = await buildWaker()
    app = await buildApp()
  })

  test('it takes orders of its own user and forwards signals', async () => {
    await using hold = await startHold(waker, [app, 'signals'])
    expect(await hold.order('start')).toMatch(/^started/)
    await eventually(() => expect(hold.stdout()).toBe('ready\n'))
    process.kill(hold.pid, 'SIGUSR1')
    process.kill(hold.pid, 'SIGTERM')
    expect(await hold.exit).toBe(42)
    expect(hold.stdout()).toBe('ready\nsignal 10\nsignal 15\n')
  })

  test('orphans come to it', async () => {
    await using hold = await startHold(waker, [app, 'parent', 'stubborn'])
    await hold.order('start')
    await eventually(() => expect(childrenOf(hold.pid)).toHaveLength(2))
  })

  test('it makes its directory', async () => {
    const parent = mkdtempSync(join(tmpdir(), 'hold-'))
    try {
      await using hold = await startHold(waker, [], { directory: join(parent, 'app') })
      expect(await hold.order('state')).toBe('holding 0')
      expect(statSync(join(parent, 'app')).mode & 0o777).toBe(0o700)
    } finally {
      rmSync(parent, { recursive: true })
    }
  })

  test('two cannot share a directory', async () => {
    await using hold = await startHold(waker, [])
    await using second = await start(waker, ['hold', '--dir', join(hold.socket, '..')])
    expect(await second.exit).toBe(1)
    expect(JSON.parse(second.stderr())).toMatchObject({ msg: 'cannot listen for orders' })
    expect(await hold.order('state')).toBe('holding 0')
  })

  test('it removes no file that is not its own', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hold-'))
    try {
      writeFileSync(join(directory, 'hold.sock'), 'precious')
      await using hold = await start(waker, ['hold', '--dir', directory])
      expect(await hold.exit).toBe(1)
      expect(statSync(join(directory, 'hold.sock')).size).toBe(8)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('a path that no socket can have is told of', async () => {
    const parent = mkdtempSync(join(tmpdir(), 'hold-'))
    try {
      const directory = join(parent, 'x'.repeat(100))
      mkdirSync(directory)
      await using hold = await start(waker, ['hold', '--dir', directory])
      expect(await hold.exit).toBe(1)
      expect(JSON.parse(hold.stderr())).toMatchObject({ error: 'Filename too long' })
    } finally {
      rmSync(parent, { recursive: true })
    }
  })

  test.each([
    [['--stop-signal', '0']],
    [['--stop-signal', '65']],
    [['--stop-signal', 'TERM']],
    [['--nonsense']],
  ])('usage error: hold %j', async args => {
    await using hold = await start(waker, ['hold', ...args, '--', app])
    expect(await hold.exit).toBe(2)
    expect(hold.stderr()).toContain('usage:')
  })
})
