import { execFile, execFileSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { isAgentError } from '../../api/agent-errors.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { refOf, statusOf } from '../container/process.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import { programsInMemory } from './in-memory.ts'
import { installPrograms, pruneInstalled } from './install.ts'

const mountNamespaceOf = (pid: number | 'self') => readlinkSync(`/proc/${pid}/ns/mnt`)
const ended = async (pid: number) => ((await statusOf(hostFs, pid))?.state ?? 'Z') === 'Z'

describe('programs on the node', () => {
  async function setUp() {
    const root = await mkdtemp(join(tmpdir(), 'install-'))
    onTestFinished(() => rm(root, { recursive: true, force: true }))
    const from = join(root, 'image')
    await mkdir(join(from, 'criu/lib'), { recursive: true })
    for (const name of ['nsrun', 'sentinel', 'criu/criu', 'criu/ld.so', 'criu/criu-shim.so'])
      await writeFile(join(from, name), name, { mode: 0o755 })
    await writeFile(join(from, 'criu/packages'), 'criu_4.2.1-1_amd64\nlibc6_2.42_amd64\n')
    const install = () => installPrograms({ from, to: join(root, 'bin'), random: seededRandom(1) })
    await mkdir(join(root, 'bin'))
    return { root, from, install }
  }

  test('are a whole copy under a name of their content', async () => {
    const { root, install } = await setUp()
    const { directory, digest, criuVersion } = await install()
    expect(criuVersion).toBe('4.2.1-1')
    expect(directory).toBe(join(root, 'bin', digest.slice(0, 32)))
    expect(await readFile(join(directory, 'criu/criu'), 'utf8')).toBe('criu/criu')
    expect((await stat(join(directory, 'nsrun'))).mode & 0o777).toBe(0o755)
    expect((await stat(join(directory, 'criu/packages'))).mode & 0o777).toBe(0o644)
  })

  test('the same content is there once, other content has another name', async () => {
    const { root, from, install } = await setUp()
    const first = await install()
    expect(await install()).toEqual(first)
    await writeFile(join(from, 'criu/lib/libx.so'), '')
    const second = await install()
    expect(second.directory).not.toBe(first.directory)
    expect((await readdir(join(root, 'bin'))).length).toBe(2)
    await pruneInstalled(join(root, 'bin'), [second.directory])
    expect(await readdir(join(root, 'bin'))).toEqual([second.digest.slice(0, 32)])
  })

  test('an image without them is refused', async () => {
    const { from, install } = await setUp()
    await rm(join(from, 'nsrun'))
    await expect(install()).rejects.toSatisfy(error => isAgentError(error, 'BinariesMissing'))
    await rm(from, { recursive: true })
    await expect(install()).rejects.toSatisfy(error => isAgentError(error, 'BinariesMissing'))
  })
})

describe.skipIf(cannotDump !== undefined)(`sentinel ${cannotDump ?? ''}`, () => {
  let node: TestNode
  beforeAll(async () => {
    node = await startTestNode()
  })
  afterAll(() => node?.dispose())

  /** Installs the programs of another version. */
  async function otherPrograms(): Promise<string> {
    const image = join(node.directory, `image-${Buffer.from(systemRandom.bytes(4)).toString('hex')}`)
    await cp(join(node.directory, 'image'), image, { recursive: true })
    await writeFile(join(image, 'note'), image)
    const to = join(node.directory, 'bin')
    return (await installPrograms({ from: image, to, random: systemRandom })).directory
  }

  test('that runs is kept', async () => {
    expect(node.launched.current).toBe(true)
    expect(node.launched.programs).toBe(node.programs.directory)
    expect((await node.launch()).hello).toEqual(node.launched.hello)
  })

  test('of other programs is replaced while it is idle, and kept while it guards something', async () => {
    const { pid } = (await node.launch()).hello
    const self = await refOf(hostFs, process.pid)
    const other = await otherPrograms()

    await node.sentinel.watch('a', self)
    expect(await node.launch(other)).toMatchObject({ current: false, hello: { pid } })
    await node.sentinel.unwatch('a')

    const next = await node.launch(other)
    expect(next).toMatchObject({ current: true, programs: other })
    expect(next.hello.pid).not.toBe(pid)
    expect(await ended(pid)).toBe(true)
  })

  test('mounts a tmpfs, once, from which the programs can be run', async () => {
    const to = join(node.directory, 'memory-bin')
    const from = join(node.directory, 'image')
    const warn = vi.fn()
    const signal = AbortSignal.timeout(30_000)
    const options = { from, to, random: systemRandom, fs: hostFs, log: { warn }, signal }
    onTestFinished(() => void execFileSync('umount', [to]))
    const programs = await programsInMemory(node.programs, options)
    expect(programs).toEqual({ ...node.programs, directory: join(to, node.programs.digest.slice(0, 32)) })
    expect(execFileSync('findmnt', ['-no', 'FSTYPE,OPTIONS', to], { encoding: 'utf8' })).toMatch(
      /^tmpfs\s+rw,nosuid,nodev,(?!.*noexec).*size=131072k.*mode=755/,
    )
    expect(await programsInMemory(node.programs, options)).toEqual(programs)
    expect(execFileSync('findmnt', ['-no', 'TARGET', to], { encoding: 'utf8' }).trim()).toBe(to)
    expect(warn).not.toHaveBeenCalled()
    expect((await node.launch(programs.directory)).programs).toBe(programs.directory)
    await node.launch()
  })

  test.each([
    // Mounting fails here.
    ['/nonexistent/bin', 'cannot mount'],
    // Simulates host mounts that do not reach the agent: here the tmpfs begins at a parent directory.
    ['below a tmpfs', 'exit 0'],
  ])('%s: the programs stay where they are', async (place, message) => {
    const from = join(node.directory, 'image')
    const to = place.startsWith('/') ? place : join(node.directory, 'not-mounted')
    const warn = vi.fn()
    const signal = AbortSignal.timeout(30_000)
    const options = { from, to, random: systemRandom, fs: hostFs, log: { warn }, signal }
    await mkdir(join(node.directory, 'not-mounted'), { recursive: true })
    // A mount namespace whose mounts this process does not see.
    const host = execFile('unshare', ['--mount', 'sleep', '60'])
    onTestFinished(() => void host.kill())
    await expect
      .poll(() => host.pid !== undefined && mountNamespaceOf(host.pid) !== mountNamespaceOf('self'))
      .toBe(true)
    const seen = { ...options, fs: { proc: '/proc', host: host.pid ?? 0 } }
    expect(await programsInMemory(node.programs, seen)).toEqual(node.programs)
    expect(warn.mock.calls[0]?.[0]).toMatchObject({ said: expect.stringContaining(message) })
  })

  test('that was killed is started again', async () => {
    const { pid } = (await node.launch()).hello
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => ended(pid)).toBe(true)
    expect((await node.launch()).hello.pid).not.toBe(pid)
  })
})
