import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isAgentError } from '../../api/agent-errors.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { systemClock } from '../../kube/clock.ts'
import { systemRandom } from '../../kube/random.ts'
import { askCell, type Cell, type CellOptions, type CellRequest, startCell } from '../cell.ts'
import type { Clone, DumpResult, LocatedPod, MemoryDriver } from '../driver/memory-driver.ts'
import { hostFs, type TestNode } from './node.ts'

const signal = new AbortController().signal

/** Containers of a test node, and their saved memory. */
export interface Cells {
  start(request: CellRequest): Promise<Cell>
  /** Returns the value of the cell's counter. */
  ask(cell: Cell): Promise<string>
  locate(cell: Cell, promoted?: boolean): Promise<LocatedPod>
  /** Creates an empty directory; `stored` turns it into a generation after a container was saved there. */
  generation(): Promise<{ readonly dir: string; readonly stored: (dumped: DumpResult) => Stored }>
  save(of: Cell | LocatedPod, driver?: MemoryDriver): Promise<Stored>
  restore(into: Cell, from: Stored, driver?: MemoryDriver): Promise<Clone>
  /** Ends the cells that were started since the last call. */
  stop(): Promise<void>
}

/** @param deadlineMs time limit of each dump and each restore */
export function cellsOf(node: TestNode, deadlineMs: number): Cells {
  const cells: Cell[] = []
  let generations = 0
  const options: CellOptions = {
    ...{ sentinel: node.sentinel, clock: systemClock, random: systemRandom, fs: hostFs, signal },
    ...{ programs: node.programs.directory, directory: join(node.directory, 'cells') },
  }
  const locate = ({ pod }: Cell, promoted = false) => node.driver.locate({ ...pod, promoted }, signal)
  const generation: Cells['generation'] = async () => {
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
      const started = await startCell(options, request)
      cells.push(started)
      return started
    },
    ask: cell => askCell(options, cell),
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
      await Promise.all(cells.splice(0).map(cell => cell.stop()))
    },
  }
}

/** Resolves to `done`, or to the error's code with its details. */
export const outcomeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => (isAgentError(error) ? `${error.code}: ${error.detail}` : String(error)),
  )
