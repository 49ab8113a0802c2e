import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isAgentError } from '../../api/agent-errors.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { systemClock } from '../../kube/clock.ts'
import { systemRandom } from '../../kube/random.ts'
import type { Clone, DumpResult, LocatedPod, MemoryDriver } from '../criu/memory-driver.ts'
import {
  askTestContainer,
  startTestContainer,
  type TestContainer,
  type TestContainerOptions,
  type TestContainerRequest,
} from '../preflight/test-container.ts'
import { hostFs, type TestNode } from './node.ts'

const signal = new AbortController().signal

/** Containers of a test node, and their saved memory. */
export interface TestContainers {
  start(request: TestContainerRequest): Promise<TestContainer>
  /** Returns the value of the test container's counter. */
  ask(testContainer: TestContainer): Promise<string>
  locate(testContainer: TestContainer, promoted?: boolean): Promise<LocatedPod>
  /** Creates an empty directory; `stored` turns it into a generation after a container was saved there. */
  generation(): Promise<{ readonly dir: string; readonly stored: (dumped: DumpResult) => Stored }>
  save(of: TestContainer | LocatedPod, driver?: MemoryDriver): Promise<Stored>
  restore(into: TestContainer, from: Stored, driver?: MemoryDriver): Promise<Clone>
  /** Ends the test containers that were started since the last call. */
  stop(): Promise<void>
}

/** @param deadlineMs time limit of each dump and each restore */
export function testContainersOf(node: TestNode, deadlineMs: number): TestContainers {
  const testContainers: TestContainer[] = []
  let generations = 0
  const options: TestContainerOptions = {
    ...{ sentinel: node.sentinel, clock: systemClock, random: systemRandom, fs: hostFs, signal },
    ...{ programs: node.programs.directory, directory: join(node.directory, 'cells') },
  }
  const locate = ({ pod }: TestContainer, promoted = false) =>
    node.driver.locate({ ...pod, promoted }, signal)
  const generation: TestContainers['generation'] = async () => {
    generations += 1
    const number = generations
    const dir = join(node.directory, 'generations', String(number))
    await mkdir(dir, { recursive: true })
    return {
      dir,
      stored: dumped => ({
        ...{ dir, completedAt: 0, pipelineMs: 0 },
        manifest: {
          ...dumped,
          ...{ version: 1, epoch: 2, generation: number, restoreHash: 'h', files: [], bytes: 0 },
          slot: { namespace: 'cells', name: 'counter-3', incarnation: '0123abcd' },
          source: { pod: 'p', podUid: 'u', node: 'n' },
        },
      }),
    }
  }
  return {
    async start(request) {
      const started = await startTestContainer(options, request)
      testContainers.push(started)
      return started
    },
    ask: testContainer => askTestContainer(options, testContainer),
    locate,
    generation,
    async save(of, driver = node.driver) {
      const located = 'containers' in of ? of : await locate(of)
      const { dir, stored } = await generation()
      return stored(await driver.dump(located, dir, { deadlineMs, signal }))
    },
    restore: async (into, from, driver = node.driver) =>
      driver.restore(await locate(into), from, { deadlineMs, signal }),
    async stop() {
      await Promise.all(testContainers.splice(0).map(testContainer => testContainer.stop()))
    },
  }
}

/** Resolves to `done`, or to the error's code with its details. */
export const outcomeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => (isAgentError(error) ? `${error.code}: ${error.detail}` : String(error)),
  )
