import { execFileSync } from 'node:child_process'
import { access, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { start } from '../../init-waker/testing/process.ts'
import {
  cannotCgroup,
  createCgroup,
  hierarchies,
  removeCgroup,
} from '../../native/sentinel/testing/cgroup.ts'
import { isAgentError } from '../api/agent-errors.ts'
import { systemClock } from '../kube/clock.ts'
import { systemRandom } from '../kube/random.ts'
import { refOf, statusOf } from './container/process.ts'
import { retire } from './retire.ts'
import { unguardAll } from './sentinel/unguard-all.ts'
import { cannotDump, hostFs, startTestNode } from './testing/node.ts'

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )
const ended = async (pid: number) => ((await statusOf(hostFs, pid))?.state ?? 'Z') === 'Z'

async function setUp() {
  const node = await startTestNode()
  const binaries = await mkdtemp(join(tmpdir(), 'image-'))
  await cp(join(node.directory, 'image'), binaries, { recursive: true })
  onTestFinished(async () => {
    await rm(binaries, { recursive: true, force: true })
    await rm(node.directory, { recursive: true, force: true })
  })
  const options = {
    ...{ fs: hostFs, clock: systemClock, random: systemRandom, binaries },
    cgroup: 'understudy-of-nobody',
    ...{ runDirectory: join(node.directory, 'run'), stateDirectory: node.directory },
    signal: AbortSignal.timeout(100_000),
  }
  return { node, options }
}

test.skipIf(cannotDump !== undefined)(
  `nothing is left on a node, whoever guards what there, and doing it again is no harm ${cannotDump ?? ''}`,
  async () => {
    const { node, options } = await setUp()
    const { pid } = node.launched.hello
    await node.sentinel.watch('guarded', await refOf(hostFs, process.pid))
    const memory = join(options.runDirectory, 'memory')
    await mkdir(memory)
    execFileSync('mount', ['-t', 'tmpfs', 'understudy', memory])
    await writeFile(join(memory, 'generation'), 'memory of an application')
    await writeFile(join(node.directory, 'identity'), 'a key')
    await symlink(options.binaries, join(node.directory, 'link'))
    node.sentinel.close()

    await retire(options)
    expect(await ended(pid)).toBe(true)
    expect(await isThere(node.directory)).toBe(false)
    expect(execFileSync('cat', ['/proc/self/mountinfo'], { encoding: 'utf8' })).not.toContain(node.directory)
    expect(await isThere(join(options.binaries, 'sentinel'))).toBe(true)

    await retire(options)
    expect(await isThere(node.directory)).toBe(false)
  },
)

test.skipIf(cannotDump !== undefined || cannotCgroup !== undefined)(
  `the cgroup is removed together with the cgroups that a killed agent has left in it ${cannotDump ?? cannotCgroup ?? ''}`,
  async () => {
    const { node, options } = await setUp()
    node.sentinel.close()
    const cgroup = `us-retired-${process.pid}`
    const own = hierarchies().map(hierarchy => join(hierarchy, cgroup))
    onTestFinished(() => own.forEach(removeCgroup))
    for (const path of own) await mkdir(join(path, 'cells', 'podcell-01234567', 'first'), { recursive: true })
    await retire({ ...options, cgroup })
    expect(await Promise.all(own.map(isThere))).toEqual(own.map(() => false))
  },
)

test.skipIf(cannotDump !== undefined)(
  `what cannot be removed is told of, and the next try comes to an end ${cannotDump ?? ''}`,
  async () => {
    const { node, options } = await setUp()
    const foreign = join(options.runDirectory, 'of-others')
    await mkdir(foreign)
    execFileSync('mount', ['-t', 'tmpfs', 'others', foreign])
    node.sentinel.close()
    try {
      const error = await retire(options).catch((error: unknown) => error)
      expect(isAgentError(error, 'NotRetired'), String(error)).toBe(true)
      expect(String(error)).toContain('cannot remove')
      expect(await isThere(foreign)).toBe(true)
    } finally {
      execFileSync('umount', [foreign])
    }
    await retire(options)
    expect(await isThere(node.directory)).toBe(false)
  },
)

test.skipIf(cannotDump !== undefined || cannotCgroup !== undefined)(
  `a fenced primary runs again when agents leave its node ${cannotDump ?? cannotCgroup ?? ''}`,
  async () => {
    const { node, options } = await setUp()
    const { sentinel } = node
    using cgroup = createCgroup()
    await using app = await start('unshare', ['--net', 'sleep', 'infinity'])
    cgroup.add(app.pid)
    const state = async () => (await statusOf(hostFs, app.pid))?.state
    const run = '0123456789abcdef'
    await sentinel.heartbeats(0)
    await sentinel.tellVotes()
    let isAnswered = false
    sentinel.onVoting(({ type, term }) => {
      if (type !== 'alone' || isAnswered) return
      isAnswered = true
      void sentinel.answered({ name: 'pod', term, run, sentNs: process.hrtime.bigint() })
    })
    await sentinel.guard({
      ...{ name: 'pod', slot: 'default.web-0.0123abcd', term: 1, version: 1, timeoutMs: 5_000 },
      ...{ voters: [`API/${run}`], netns: await refOf(hostFs, app.pid), cgroups: [cgroup.path] },
    })
    await vi.waitFor(async () => expect(await state()).toBe('T'))

    await unguardAll(sentinel, {
      fateOf: async () => 'GoesOn',
      end: async () => undefined,
      onWait: () => undefined,
      clock: systemClock,
      signal: AbortSignal.timeout(60_000),
    })
    sentinel.close()
    await retire(options)
    await vi.waitFor(async () => expect(await state()).toBe('S'))
    expect(await isThere(node.directory)).toBe(false)
  },
)
