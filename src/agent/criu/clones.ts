import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { holdDirectory } from '../../api/pod-contract.ts'
import { type HoldOrder, type HoldReply, orderHold } from '../container/hold.ts'
import { isSame } from '../container/process.ts'
import type { DriverDependencies } from './dependencies.ts'
import type { Clone, ClonedContainer, LocatedPod } from './memory-driver.ts'
import { assertServing, dropPages } from './pages.ts'
import { endTree, runningOf } from './tree.ts'

/** See MemoryDriver.thaw. */
export async function thaw(deps: DriverDependencies, clone: Clone): Promise<Clone> {
  try {
    // Uses the stored record: pages that arrived since the caller read it are no longer outstanding.
    const { pages } = (await deps.records.load(clone.podUid)) ?? {}
    for (const server of pages?.servers ?? []) await assertServing(deps, server)
  } catch (error) {
    if (isAgentError(error, 'PagesLost')) throw new AgentError('CloneLost', error.message, error)
    throw error
  }
  await Promise.all(clone.containers.map(container => thawContainer(deps, container)))
  return { ...clone, stage: 'Thawed' }
}

async function thawContainer(deps: DriverDependencies, container: ClonedContainer): Promise<void> {
  const { name, app, pidBelowHold } = container
  try {
    await deps.sentinel.treeContinue(app)
  } catch (error) {
    if (isAgentError(error, 'ProcessGone')) throw new AgentError('CloneLost', `container ${name}`, error)
    throw error
  }
  const reply = await order(deps, container, { order: 'adopt', pid: pidBelowHold })
  // `busy` with this same app: an earlier agent got this far.
  if (reply.word === 'adopted' || (reply.word === 'busy' && reply.number === pidBelowHold)) return
  if (reply.word === 'died' || reply.word === 'unknown')
    throw new AgentError('CloneLost', `container ${name}: ${reply.word} ${reply.number}`)
  throw new AgentError('ThawFailed', `container ${name}: ${reply.word} ${reply.number}`)
}

function order(
  deps: DriverDependencies,
  { hold, name }: Pick<ClonedContainer, 'hold' | 'name'>,
  what: HoldOrder,
): Promise<HoldReply> {
  const root = `${deps.fs.proc}/${hold.pid}/root`
  return orderHold({ root, directory: holdDirectory(name), clock: deps.clock }, what)
}

/** See MemoryDriver.discard. */
export async function discard(deps: DriverDependencies, clone: Clone): Promise<void> {
  for (const container of clone.containers) {
    // Before the kill: when an app that `hold` has adopted ends, the container ends.
    if (await isHolding(deps, container)) await release(deps, container)
    await endTree(deps.sentinel, container.app)
  }
  await dropPages(deps, clone)
  await deps.records.remove(clone.podUid)
}

async function release(deps: DriverDependencies, container: ClonedContainer): Promise<void> {
  try {
    await order(deps, container, { order: 'release' })
  } catch (error) {
    // `hold` ends with its container, or has already ended: then there is nothing to release.
    if (!isAgentError(error, 'HoldUnavailable')) throw error
    if (await isHolding(deps, container)) throw error
  }
}

/** After the app's end `hold` stays for a moment, and takes no orders. */
const isHolding = async ({ fs }: DriverDependencies, { hold, app }: ClonedContainer): Promise<boolean> =>
  (await isSame(fs, hold)) && (await isSame(fs, app))

/** See MemoryDriver.clonesOf. */
export async function clonesOf(deps: DriverDependencies, pod: LocatedPod): Promise<Clone | undefined> {
  const clone = await deps.records.load(pod.pod.uid)
  if (clone === undefined) return undefined
  for (const container of clone.containers) {
    const located = pod.containers.find(it => it.name === container.name)
    const same = located?.init.pid === container.hold.pid && located.init.start === container.hold.start
    // The first process changed: the container has restarted since, and the tree below it is gone.
    if (!same || !(await isSame(deps.fs, container.app))) return undefined
  }
  // `hold` decides, not the record: the clone is thawed if `hold` runs it. A second thaw does no harm.
  const states = await Promise.all(clone.containers.map(it => order(deps, it, { order: 'state' })))
  const thawed = states.every((state, index) => {
    const container = clone.containers[index]
    return state.word === 'running' && state.number === container?.pidBelowHold
  })
  // A clone with running processes was thawed, whatever `hold` says: the previous agent stopped halfway.
  const running = await Promise.all(clone.containers.map(({ app }) => runningOf(deps.fs, app.pid)))
  return { ...clone, stage: thawed || running.some(pids => pids.length > 0) ? 'Thawed' : 'Frozen' }
}
