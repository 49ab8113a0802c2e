import { holdDirectory } from '../../api/pod-contract.ts'
import { firstProcessesIn, locateContainers } from '../container/container.ts'
import { orderHold } from '../container/hold.ts'
import type { ProcessRef } from '../container/process.ts'
import { refOf } from '../container/process.ts'
import { clonesOf, discard, thaw } from './clones.ts'
import type { DriverDependencies } from './dependencies.ts'
import { dump } from './dump.ts'
import type { LocatedAppContainer, LocatedPod, MemoryDriver, PodTarget } from './memory-driver.ts'
import { settle } from './pages.ts'
import { restore } from './restore.ts'
import { childBelowHold } from './tree.ts'

/** Creates the driver of pods' memory, which works through CRIU and the node's sentinel. */
export function createMemoryDriver(deps: DriverDependencies): MemoryDriver {
  return {
    locate: (pod, signal) => locate(deps, pod, signal),
    firstProcesses: podUid => firstProcessesIn(deps.fs, podUid),
    dump: (pod, directory, options) => dump(deps, pod, directory, options),
    recordsOnRequest: podUid => deps.tracking?.recordsOnRequest(podUid) ?? false,
    endRecord: async podUid => deps.tracking?.end(podUid),
    restore: (pod, from, options) => restore(deps, pod, from, options),
    thaw: clone => thaw(deps, clone),
    settle: (clone, signal) => settle(deps, clone, signal),
    discard: clone => discard(deps, clone),
    clonesOf: pod => clonesOf(deps, pod),
  }
}

async function locate(deps: DriverDependencies, pod: PodTarget, signal: AbortSignal): Promise<LocatedPod> {
  const located = await locateContainers(deps.fs, pod.uid, pod.containers)
  const containers = await Promise.all(
    located.map(async (found, index): Promise<LocatedAppContainer> => {
      const imageId = pod.containers[index]?.imageId ?? ''
      const app = pod.promoted ? await appBelowHold(deps, found, signal) : found.init
      return { ...found, imageId, app }
    }),
  )
  return { pod, containers }
}

/** Returns the app that `hold` runs; undefined while `hold` has none. */
async function appBelowHold(
  deps: DriverDependencies,
  { init, name }: { readonly init: ProcessRef; readonly name: string },
  signal: AbortSignal,
): Promise<ProcessRef | undefined> {
  const root = `${deps.fs.proc}/${init.pid}/root`
  const reply = await orderHold(
    { root, directory: holdDirectory(name), clock: deps.clock, signal },
    { order: 'state' },
  )
  if (reply.word !== 'running') return undefined
  const pid = await childBelowHold(deps.fs, init, reply.number)
  return pid === undefined ? undefined : refOf(deps.fs, pid)
}
