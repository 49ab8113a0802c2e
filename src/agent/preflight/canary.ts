import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { messageOf } from '../../kube/errors.ts'
import type { LocatedPod, MemoryDriver } from '../criu/memory-driver.ts'
import { type RecordTechnique, recordTechnique } from './record.ts'
import {
  askTestContainer,
  holdCommand,
  serveCommand,
  startTestContainer,
  type TestContainer,
  type TestContainerOptions,
} from './test-container.ts'

export interface CanaryOptions extends TestContainerOptions {
  readonly driver: MemoryDriver
}

export interface CanaryResult {
  readonly dumpMs: number
  readonly frozenMs: number
  readonly restoreMs: number
  readonly thawMs: number
  /** Why connections to a dead pod cannot be redirected to its heir here; absent: they can. */
  readonly graveProblem?: string
  /** Why pages cannot arrive here after their app has started; absent: they can. */
  readonly lazyProblem?: string
  /** How the kernel records which pages are written. */
  readonly record: RecordTechnique
}

const operationMs = 20_000

/**
 * Saves the memory of a small server with several processes and threads, and restores it in another container, just as
 * for pods. A node's own claim proves nothing (`criu check` passes even if no socket can be dumped); this test does.
 *
 * @throws AgentError with the failure; everything that the test started is gone then.
 */
export async function runCanary(options: CanaryOptions): Promise<CanaryResult> {
  const { driver, clock, directory, signal } = options
  await rm(directory, { recursive: true, force: true })
  const running: TestContainer[] = []
  const start = async (role: string, command: readonly string[]) => {
    const testContainer = await startTestContainer(options, { role, command })
    running.push(testContainer)
    return testContainer
  }
  const locate = (testContainer: TestContainer): Promise<LocatedPod> =>
    driver.locate(testContainer.pod, signal)
  try {
    const primary = await start('primary', serveCommand)
    // Litter says nothing about this node, and goes with the installation at the latest.
    await primary.removeAbandoned().catch(() => undefined)
    const understudy = await start('understudy', holdCommand)
    await expectCount(options, primary, 1)
    await expectCount(options, primary, 2)

    const graveProblem = await whyNoGrave(options, primary)
    const record = await recordTechnique(options)
    const generation = join(directory, 'generation')
    await mkdir(generation, { recursive: true, mode: 0o700 })
    const source = await locate(primary)
    const begin = clock.monotonic()
    const dumped = await driver.dump(source, generation, { deadlineMs: operationMs, signal })
    const afterDump = clock.monotonic()
    // The restored memory is that of the moment of the dump, not the primary's present one.
    await expectCount(options, primary, 3)
    const target = await locate(understudy)
    const beforeRestore = clock.monotonic()
    const stored = {
      dir: generation,
      manifest: canaryManifest(dumped),
      completedAt: afterDump,
      pipelineMs: 0,
    }
    const clone = await driver.restore(target, stored, { deadlineMs: operationMs, signal })
    const afterRestore = clock.monotonic()
    const thawed = await driver.thaw(clone)
    const afterThaw = clock.monotonic()
    await expectCount(options, understudy, 3)
    await expectCount(options, understudy, 4)
    await driver.discard(thawed)
    const lazyProblem = await whyNotLazy(options, understudy, stored)
    return {
      ...(graveProblem === undefined ? {} : { graveProblem }),
      ...(lazyProblem === undefined ? {} : { lazyProblem }),
      record,
      dumpMs: afterDump - begin,
      frozenMs: dumped.frozenSeconds * 1e3,
      restoreMs: afterRestore - beforeRestore,
      thawMs: afterThaw - afterRestore,
    }
  } catch (error) {
    throw await ofEnded(running, error)
  } finally {
    await Promise.all(running.map(it => it.stop()))
    await rm(directory, { recursive: true, force: true })
  }
}

/** An error on a test container that had ended says nothing about memory: the end of the test container becomes the reason. */
async function ofEnded(testContainers: readonly TestContainer[], error: unknown): Promise<unknown> {
  const ends: string[] = []
  for (const testContainer of testContainers) {
    const end = await testContainer.end()
    if (end !== undefined) ends.push(`its ${testContainer.pod.name} ${end}`)
  }
  if (ends.length === 0) return error
  const message = messageOf(error)
  return new AgentError('RestoreFailed', `${ends.join('; ')}; then: ${message}`, error)
}

/** No watch of a pod has such a name. */
const watchPrefix = 'canary/'

/**
 * How often the rules of a redirect are tried. The first rules after a boot make the kernel load modules. A slow node needs more time
 * for that than the sentinel waits, and the kernel continues meanwhile.
 */
const redirectTries = 3
const redirectPauseMs = 1_000

/** Tries the rules of a redirect in the network of the server, which keeps running without them. */
async function whyNoGrave(
  { sentinel, clock, signal }: CanaryOptions,
  { pod, init }: TestContainer,
): Promise<string | undefined> {
  // Left by an agent that ended during a canary.
  for (const { name } of await sentinel.watches(signal))
    if (name.startsWith(watchPrefix)) await sentinel.unwatch(name, signal)
  const name = `${watchPrefix}${pod.uid}`
  await sentinel.watch(name, init, signal)
  try {
    for (let left = redirectTries - 1; ; left -= 1) {
      const problem = await whyNotRedirected()
      if (problem === undefined || left === 0) return problem
      await clock.sleep(redirectPauseMs, signal)
    }
  } finally {
    await sentinel.unwatch(name, signal)
  }

  async function whyNotRedirected(): Promise<string | undefined> {
    try {
      await sentinel.prepareRedirect({ name, netns: init, heir: '127.0.0.1' }, signal)
      await sentinel.redirect(name, signal)
      await sentinel.undoRedirect(name, signal)
      return undefined
    } catch (error) {
      if (!isAgentError(error, 'SentinelRefused')) throw error
      return error.message
    }
  }
}

/** Restores the same memory again, in the understudy that has just held it, with its pages arriving later. */
async function whyNotLazy(
  options: CanaryOptions,
  understudy: TestContainer,
  stored: Stored,
): Promise<string | undefined> {
  const { driver, signal } = options
  try {
    const target = await driver.locate(understudy.pod, signal)
    const lazily = 'Always'
    const clone = await driver.restore(target, stored, { deadlineMs: operationMs, signal, lazily })
    try {
      await driver.thaw(clone)
      await expectCount(options, understudy, 3)
      await driver.settle(clone, AbortSignal.any([signal, AbortSignal.timeout(operationMs)]))
      await expectCount(options, understudy, 4)
    } finally {
      await driver.discard(clone)
    }
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    const cause = await ofEnded([understudy], error)
    return cause instanceof Error ? cause.message : String(cause)
  }
}

async function expectCount(
  options: CanaryOptions,
  testContainer: TestContainer,
  expected: number,
): Promise<void> {
  const said = await askTestContainer(options, testContainer)
  const wanted = `${expected} ${expected} ${expected}`
  if (said !== wanted) throw new AgentError('RestoreFailed', `the test server counts ${said}, not ${wanted}`)
}

function canaryManifest(dumped: Awaited<ReturnType<MemoryDriver['dump']>>): Manifest {
  return {
    ...dumped,
    version: 1,
    slot: { namespace: 'cells', name: 'canary-0', incarnation: '00000000' },
    epoch: 1,
    generation: 1,
    source: { pod: 'canary', podUid: 'canary', node: 'canary' },
    restoreHash: 'canary',
    files: [],
    bytes: 0,
  }
}
