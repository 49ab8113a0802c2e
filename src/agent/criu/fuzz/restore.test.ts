/**
 * Whole restores of randomly changed images, by the real CRIU, in disposable containers. The node of the primary can
 * sign any image, so signatures prevent none of this. `npm run fuzz` runs many: UNDERSTUDY_FUZZ_ROUNDS and
 * UNDERSTUDY_FUZZ_SEED set how many and which.
 */
import { cp, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { isAgentError } from '../../../api/agent-errors.ts'
import { isCheckpointError } from '../../../checkpoint/errors.ts'
import type { Stored } from '../../../checkpoint/store.ts'
import { seededRandom } from '../../../kube/random.ts'
import {
  holdCommand,
  serveCommand,
  type TestContainer,
  type TestContainerRequest,
} from '../../preflight/test-container.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../../testing/node.ts'
import { type TestContainers, testContainersOf } from '../../testing/test-containers.ts'
import { createMemoryDriver } from '../driver.ts'
import { escapes } from '../escape.ts'
import { beyondLimits, livingLimits } from '../limits.ts'
import type { Clone, MemoryDriver } from '../memory-driver.ts'
import { excess, livingRights } from '../rights.ts'
import { nestedChildren, runningOf, threadsOf } from '../tree.ts'
import { type Mutation, mutationOf } from './mutate.ts'
import { createOutside, type Outside } from './outside.ts'

const rounds = Number(process.env['UNDERSTUDY_FUZZ_ROUNDS'] ?? 12)
const seed = Number(process.env['UNDERSTUDY_FUZZ_SEED'] ?? 1)

vi.setConfig({ testTimeout: 120_000 + rounds * 20_000, hookTimeout: 300_000 })

describe.skipIf(cannotDump !== undefined)(`D10.fuzz: images changed at random ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let outside: Outside
  let saved: Stored
  const signal = new AbortController().signal
  const deadlineMs = 15_000
  let testContainers: TestContainers
  const testContainer = (request: TestContainerRequest) =>
    testContainers.start({ ...request, options: ['--user', '1000'] })
  const understudy = () => testContainer({ role: 'understudy', command: holdCommand })

  beforeAll(async () => {
    node = await startTestNode()
    testContainers = testContainersOf(node, deadlineMs)
    const primary = await testContainer({ role: 'primary', command: serveCommand })
    await testContainers.ask(primary)
    saved = await testContainers.save(primary)
    await primary.stop()
    await mkdir(join(node.directory, 'work'), { recursive: true })
    outside = await createOutside(node.directory, node.programs.directory, [
      saved.dir,
      node.programs.directory,
    ])
  })
  afterAll(() => node?.dispose())

  const images = (of: Stored) => join(of.dir, 'containers', 'app', 'criu')

  /** Changes the generation before the driver checks its images. */
  async function asItCame(mutation: Mutation, into: TestContainer): Promise<Outcome> {
    const dir = join(node.directory, 'forged')
    await cp(saved.dir, dir, { recursive: true })
    try {
      const forged = { ...saved, dir }
      const made = await mutation(images(forged))
      return await restore(node.driver, forged, into, () => `as it came: ${made}`)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  }
  /**
   * Changes the images after these checks, right before CRIU reads them: later defences must hold changes that the
   * checks miss.
   */
  async function unseen(mutation: Mutation, into: TestContainer): Promise<Outcome> {
    let made = 'nothing'
    const driver = createMemoryDriver({
      ...node.dependencies,
      sentinel: {
        ...node.sentinel,
        async spawn(request, ...more) {
          const copy = request.files.find(({ fd }) => fd === 201)?.path
          if (request.namespaces === 'clone' && copy !== undefined) made = await mutation(copy)
          return node.sentinel.spawn(request, ...more)
        },
      },
    })
    return restore(driver, saved, into, () => `unseen: ${made}`)
  }

  interface Outcome {
    readonly what: string
    /** Code of an AgentError or CheckpointError, or `restored`. */
    readonly end: string
    readonly said: string
  }
  async function restore(
    driver: MemoryDriver,
    from: Stored,
    into: TestContainer,
    what: () => string,
  ): Promise<Outcome> {
    const located = await driver.locate({ ...into.pod, promoted: false }, signal)
    try {
      await assertWithin(await driver.restore(located, from, { deadlineMs, signal }))
      return { what: what(), end: 'restored', said: '' }
    } catch (error) {
      if (!isAgentError(error) && !isCheckpointError(error)) throw new Error(what(), { cause: error })
      await expect.poll(() => nestedChildren(hostFs, into.init), { message: what() }).toEqual([])
      return { what: what(), end: error.code, said: error.message }
    }
  }
  /** Asserts that the restored processes are stopped and have no more rights than their container. */
  async function assertWithin({ containers }: Clone): Promise<void> {
    for (const { app, hold } of containers) {
      const [rights, limits] = [await livingRights(hostFs, hold.pid), await livingLimits(hostFs, hold.pid)]
      if (rights === undefined || limits === undefined) throw new Error('the understudy is gone')
      const more = await escapes(hostFs, app.pid, hold.pid)
      for (const thread of await threadsOf(hostFs, app.pid)) {
        const [has, may] = [await livingRights(hostFs, thread), await livingLimits(hostFs, thread)]
        if (has !== undefined) more.push(...excess(has, rights))
        if (may !== undefined) more.push(...beyondLimits(may, limits, rights))
      }
      expect([more, await runningOf(hostFs, app.pid)]).toEqual([[], []])
    }
  }

  it(`each ends as a refusal or within its container, and nothing else has changed: ${rounds} from seed ${seed}`, async () => {
    const before = await outside.state()
    const ends = new Map<string, number>()
    for (let round = 0; round < rounds; round += 1) {
      const mutation = mutationOf(seededRandom(seed * 1_000_000 + round))
      const into = await understudy()
      const { what, end, said } = await (round % 2 === 0 ? asItCame : unseen)(mutation, into).finally(() =>
        into.stop(),
      )
      // `nsrun` reports death by a signal as shells do.
      const signalled = /: (signal \d+|exit code (?:129|1[3-5]\d));/.exec(said)?.[1]
      const kind = [end, ...(signalled === undefined ? [] : [signalled])].join(' ')
      ends.set(kind, (ends.get(kind) ?? 0) + 1)
      if (signalled !== undefined || rounds > 100)
        console.info(`${round} ${what}: ${kind} ${said.slice(0, 160)}`)
      await expect
        .poll(() => outside.state(), { message: `${round} ${what}: ${end}`, timeout: 20_000 })
        .toEqual(before)
    }
    console.info(Object.fromEntries(ends))
    // The unchanged generation can still be restored: no round has damaged it or the node.
    const last = await understudy()
    try {
      expect((await restore(node.driver, saved, last, () => 'unchanged')).end).toBe('restored')
    } finally {
      await last.stop()
    }
  })
})
