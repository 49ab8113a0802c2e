import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile, cp, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileStatic } from '../build/compile.ts'
import { buildWaker } from '../init-waker/build.ts'
import { cannotUnshare, childrenOf, stateOf, statusField } from '../init-waker/testing/process.ts'
import { newPidNamespace } from '../src/checkpoint/images/edits.ts'
import { listeningAddresses } from '../src/checkpoint/images/listening.ts'
import { eventually } from '../test/support/eventually.ts'
import { buildNodeTools } from './build.ts'
import {
  ask,
  type Container,
  childOf,
  type Done,
  enter,
  order,
  startContainer,
  type Target,
} from './testing/container.ts'

const local = (name: string) => join(import.meta.dirname, name)
const tool = (name: string) => `/proc/self/fd/200/${name}`
const criu = [
  tool('criu/ld.so'),
  ...['--library-path', tool('criu/lib'), '--preload', tool('criu/criu-shim.so')],
  tool('criu/criu'),
]
const common = [
  ...['-D', '/proc/self/fd/201', '-v1', '--manage-cgroups=ignore', '--file-locks', '--link-remap'],
  ...['--ghost-limit', '67108864', '--ext-unix-sk', '--tcp-close'],
]

const programs: string[] = []
let scratch = ''
let tools = ''
beforeAll(async () => {
  if (cannotUnshare !== undefined) return
  programs.push(await buildWaker(), await compileStatic(local('../images/counter/counter.c')))
  scratch = await mkdtemp(join(tmpdir(), 'understudy-restore-'))
  tools = join(scratch, 'tools')
  await cp((await buildNodeTools()).directory, tools, { recursive: true })
  await copyFile(await compileStatic(local('testing/strict.c')), join(tools, 'strict'))
})
afterAll(async () => {
  if (scratch !== '') await rm(scratch, { recursive: true, force: true })
})

const counter = ['/counter', '--port', '8080']
const hold = ['/waker', 'hold', '--dir', '/orders', '--', ...counter]

interface Kind {
  readonly user?: number
  readonly strict?: readonly string[]
}

const container = async (command: readonly string[], kind: Kind): Promise<Container> =>
  startContainer({
    ...kind,
    ...{ tools, programs, command },
    directory: await mkdtemp(join(scratch, 'container-')),
  })

/** Dumps a process and its descendants, which keep running; resolves with the directory of the images. */
async function dump(target: Target, environment = {}): Promise<string> {
  const images = await mkdtemp(join(scratch, 'images-'))
  const done = await enter(
    tools,
    target,
    'keep',
    [
      ...[...criu, 'dump', '-t', '1', '-o', 'dump.log', ...common],
      ...['--skip-in-flight', '--network-lock', 'skip', '--leave-running'],
    ],
    { 201: `<${images}` },
    environment,
  )
  const log = await readFile(join(images, 'dump.log'), 'utf8').catch(() => '')
  expect(done, log).toMatchObject({ code: 0, stderr: '' })
  expect(await newPidNamespace(images)).toBe(true)
  return images
}

/** Restores a process below `hold`, stopped; resolves with its pids inside the container and here. */
async function restore(images: string, from: Target, into: Container): Promise<Target & { inside: number }> {
  const done = await criuRestore(images, from, into)
  const log = await readFile(join(images, 'restore.log'), 'utf8').catch(() => '')
  expect(done, log).toMatchObject({ code: 0 })
  const inside = Number(await readFile(join(images, 'pid'), 'utf8'))
  return { ...(await childOf(into, inside)), inside }
}

async function criuRestore(images: string, from: Target, into: Container, mode = 'clone'): Promise<Done> {
  // CRIU does not overwrite a pid file, e.g. of an earlier attempt.
  await rm(join(images, 'pid'), { force: true })
  const pipes = await Promise.all([1, 2].map(fd => readlink(`/proc/${from.pid}/fd/${fd}`)))
  return enter(
    tools,
    into,
    mode,
    [
      ...[...criu, 'restore', '-o', 'restore.log', ...common],
      ...['--restore-detached', '--leave-stopped', '--pidfile', '/proc/self/fd/201/pid'],
      ...['--action-script', '/proc/@KEEPER@/fd/200/nsrun'],
      ...pipes.flatMap((pipe, index) => ['--inherit-fd', `fd[${210 + index}]:${pipe}`]),
    ],
    { 201: `<${images}`, 210: `>/proc/${into.pid}/fd/1`, 211: `>/proc/${into.pid}/fd/2` },
  )
}

/** Lets a restored process run as the container's own. */
async function thaw(clone: Target & { inside: number }, into: Container): Promise<void> {
  process.kill(clone.pid, 'SIGCONT')
  expect(await order(into, `adopt ${clone.inside}`)).toBe(`adopted ${clone.inside}`)
}

/** Lists all paths in the writable layer. */
const written = async (it: Container): Promise<string[]> =>
  (await readdir(join(it.directory, 'upper'), { recursive: true })).sort()

describe.skipIf(cannotUnshare !== undefined)(`memory moves between containers ${cannotUnshare ?? ''}`, () => {
  test.each<[string, Kind]>([
    ['as root', {}],
    ['of a user without capabilities', { user: 1000 }],
    ['with a read-only root file system', { strict: ['root'] }],
    ['of a user, read-only, with parts of /proc hidden', { user: 1000, strict: ['proc', 'root'] }],
  ])('a counter goes on in another container, and from there in a third, %s', async (_, kind) => {
    // CRIU examines the kernel once, where it may write anything.
    await using scout = await container(counter, {})
    await ask(scout)
    await dump(scout, { UNDERSTUDY_KDAT: 'write' })
    expect((await readdir(tools)).filter(name => name.startsWith('criu.kdat'))).toEqual([
      `criu.kdat.${(await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()}`,
    ])

    await using primary = await container(counter, kind)
    await using second = await container(hold, kind)
    const before = await written(primary)
    const beforeSecond = await written(second)
    await eventually(() => ask(primary))
    const { count, startedAt } = await ask(primary)
    const images = await dump(primary)
    const clone = await restore(images, primary, second)
    // The dump left the primary running: it has not noticed.
    expect(await ask(primary)).toMatchObject({ count: count + 1, startedAt })

    // It stops as soon as it gets a processor.
    await eventually(() => expect(stateOf(clone.pid)).toBe('T'))
    expect(await order(second, 'state')).toBe('holding 0')
    await thaw(clone, second)
    expect(await ask(second)).toMatchObject({ count: count + 1, startedAt })
    expect(await order(second, 'state')).toBe(`running ${clone.inside}`)
    for (const field of ['Uid', 'Gid', 'CapEff', 'CapPrm', 'CapBnd', 'NoNewPrivs'])
      expect(statusField(clone.pid, field), field).toBe(statusField(primary.pid, field))
    expect(await readFile(`/proc/${clone.pid}/limits`, 'utf8')).toBe(
      await readFile(`/proc/${primary.pid}/limits`, 'utf8'),
    )
    await expectOwnProc(clone, kind)
    // The application can see none of our files.
    expect(await written(primary)).toEqual(before)
    expect(await written(second)).toEqual(beforeSecond)

    await using third = await container(hold, kind)
    const again = await restore(await dump(clone), clone, third)
    await thaw(again, third)
    expect(await ask(third)).toMatchObject({ count: count + 2, startedAt })
    expect(await ask(second, '/peek')).toMatchObject({ count: count + 1 })
    // The container ends with the application.
    process.kill(third.pid, 'SIGTERM')
    expect(await third.exit).toBe(0)
  })

  test('a restored process sees itself as the first one, and the container covers its /proc', async () => {
    await using primary = await container(counter, {})
    await using second = await container(hold, { strict: ['proc'] })
    await eventually(() => ask(primary))
    const clone = await restore(await dump(primary), primary, second)
    expect(statusField(clone.pid, 'NSpid')?.split(/\s+/)).toHaveLength(3)
    await expectOwnProc(clone, { strict: ['proc'] })
    // The container's own /proc is unchanged.
    expect(await mountsAt(second, '/proc')).toHaveLength(1)
  })

  test('clients that connect to a frozen clone, or while it is replaced, are answered by the next one', async () => {
    await using primary = await container(counter, {})
    await using second = await container(hold, {})
    await eventually(() => ask(primary))
    const images = await dump(primary)
    const old = await restore(images, primary, second)
    const early = ask(second, '/peek')
    await eventually(() => expect(queuedIn(second)).toBe(1))

    const keeper = spawn(join(tools, 'keep-listening'), ['all', `${old.pid}:${old.start}`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const ended = once(keeper, 'close')
    const [told] = (await once(keeper.stdout, 'data')) as [Buffer]
    expect(told.toString()).toBe('kept 1\n')
    process.kill(old.pid, 'SIGKILL')
    await eventually(() => expect(childrenOf(second.pid)).toEqual([]))
    const between = ask(second, '/peek')
    await eventually(() => expect(queuedIn(second)).toBe(2))

    const next = await restore(images, primary, second)
    const late = ask(second, '/peek')
    await eventually(() => expect(queuedIn(second)).toBe(3))
    keeper.stdin.end()
    expect(await ended).toEqual([0, null])
    // One more has come to wake the process.
    expect(queuedIn(second)).toBe(4)
    await thaw(next, second)
    const { startedAt } = await ask(primary)
    for (const each of [early, between, late]) expect(await each).toMatchObject({ startedAt })
  })

  test('clients that connect before the first clone is restored are answered by it', async () => {
    await using primary = await container(counter, {})
    await using second = await container(hold, {})
    await eventually(() => ask(primary))
    const images = await dump(primary)
    const [listening] = await listeningAddresses(images, { from: undefined, to: '' })
    const { address, port } = listening ?? {}
    const keeper = spawn(
      join(tools, 'keep-listening'),
      ['open', `${second.pid}:${second.start}`, `${address}/${port}`],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const ended = once(keeper, 'close')
    expect(String(await once(keeper.stdout, 'data'))).toBe('kept 1\n')
    const early = ask(second, '/peek')
    await eventually(() => expect(queuedIn(second)).toBe(1))
    const clone = await restore(images, primary, second)
    keeper.stdin.end()
    expect(await ended).toEqual([0, null])
    await thaw(clone, second)
    const { startedAt } = await ask(primary)
    expect(await early).toMatchObject({ startedAt })
  })

  test('a process that could not have its own /proc does not come back', async () => {
    await using primary = await container(counter, {})
    await using second = await container(hold, {})
    await eventually(() => ask(primary))
    const images = await dump(primary)
    // The script refuses to mount a /proc in the container's own mount namespace.
    const done = await criuRestore(images, primary, second, 'keep')
    expect(done.code).not.toBe(0)
    expect(await readFile(join(images, 'restore.log'), 'utf8')).toContain(
      "nsrun: the mount namespace is the container's own",
    )
    expect(childrenOf(second.pid)).toEqual([])
    expect(await order(second, 'state')).toBe('holding 0')
    // The failure has spoiled nothing.
    await thaw(await restore(images, primary, second), second)
    expect(await ask(second)).toMatchObject({ startedAt: (await ask(primary)).startedAt })
  })
})

/** Returns how many connections wait to be accepted in the container's network. */
const queuedIn = (target: Target): number =>
  ['tcp', 'tcp6']
    .flatMap(table => readFileSync(`/proc/${target.pid}/net/${table}`, 'utf8').split('\n').slice(1))
    .map(line => line.trim().split(/\s+/))
    // A listening socket (state 0A) tells the length of its queue as what it has to receive.
    .filter(([, , , state]) => state === '0A')
    .reduce((sum, [, , , , queues]) => sum + Number.parseInt(queues?.split(':')[1] ?? '0', 16), 0)

async function mountsAt(target: Target, point: string): Promise<string[]> {
  const mounts = (await readFile(`/proc/${target.pid}/mountinfo`, 'utf8')).split('\n')
  return mounts.filter(line => line.split(' ')[4] === point)
}

/** Checks that the process has a /proc of its own pid namespace, with the covers of the container's. */
async function expectOwnProc(clone: Target, { strict }: Kind): Promise<void> {
  const proc = `/proc/${clone.pid}/root/proc`
  expect((await readFile(`${proc}/1/comm`, 'utf8')).trim()).toBe('counter')
  expect(await mountsAt(clone, '/proc')).toHaveLength(2)
  const covered = strict?.includes('proc') ? 2 : 0
  for (const point of ['/proc/timer_list', '/proc/irq', '/proc/sys'])
    expect(await mountsAt(clone, point), point).toHaveLength(covered)
  if (covered === 0) return
  expect(await readFile(`${proc}/timer_list`, 'utf8')).toBe('')
  expect(await readdir(`${proc}/irq`)).toEqual([])
  const [, options] = (await mountsAt(clone, '/proc/sys')).map(line => line.split(' ')[5] ?? '')
  expect(options?.split(',')).toEqual(expect.arrayContaining(['ro', 'nosuid', 'nodev', 'noexec']))
}
