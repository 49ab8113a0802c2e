/** Dumps and restores memory on a machine of the model: it takes time, and can be interrupted at any moment. */
import type { Clone, LocatedPod, MemoryDriver } from '../../../src/agent/criu/memory-driver.ts'
import { AgentError } from '../../../src/api/agent-errors.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import type { Random } from '../../../src/kube/random.ts'
import type { VirtualTime } from './virtual-time.ts'
import { type App, isToRun, letRun, type Machine, type Memory, memoryNow, type PodOnNode } from './world.ts'

/** The restored apps below `hold` of a pod, as a driver describes them; frozen or running. */
export type Clones = Map<string, Clone>

export interface DriverOptions {
  readonly machine: Machine
  readonly time: VirtualTime
  readonly clock: Clock
  readonly random: Random
  readonly clones: Clones
  /** Called when an app below `hold` is discarded. It counts as a death only if the app ran; `hold` stays. */
  readonly ended: (pod: PodOnNode, container: string, app: App) => void
  /** An app starts to run with this memory. */
  readonly thawed: (pod: PodOnNode, clone: Clone) => void
}

export function createModelDriver(options: DriverOptions): MemoryDriver {
  const { machine, time, clock, random, clones } = options
  const podOf = (uid: string): PodOnNode => {
    const pod = machine.pods.get(uid)
    if (pod === undefined || pod.killed) throw new AgentError('NotRunning')
    return pod
  }
  const isOf = (pod: PodOnNode, located: LocatedPod) =>
    located.containers.every(({ name, containerId }) =>
      pod.containers.some(each => each.name === name && each.up && each.id === containerId),
    )
  const endClone = async (uid: string) => {
    await clock.sleep(2)
    const pod = machine.pods.get(uid)
    clones.delete(uid)
    if (pod === undefined) return
    for (const container of pod.containers) {
      const { app } = container
      if (!container.holds || app === undefined) continue
      container.app = undefined
      options.ended(pod, container.name, app)
    }
  }
  return {
    recordsOnRequest: () => false,
    endRecord: async () => undefined,
    async locate(target): Promise<LocatedPod> {
      await clock.sleep(1)
      const pod = podOf(target.uid)
      const containers = target.containers.map(wanted => {
        const found = pod.containers.find(({ name }) => name === wanted.name)
        if (found === undefined || !found.up || found.id !== wanted.containerId)
          throw new AgentError('NotRunning', `container ${wanted.name}`)
        const process = { pid: pidOf(found.id), start: 1 }
        const app = found.app === undefined || !isThawed(clones, pod, found.holds) ? undefined : process
        return { ...wanted, init: process, app: found.holds ? app : process, depth: 1, cgroups: [pod.uid] }
      })
      return { pod: target, containers }
    },
    async firstProcesses(uid) {
      await clock.sleep(1)
      const running = machine.pods.get(uid)?.containers.filter(({ up }) => up) ?? []
      return running.map(({ id }) => ({ pid: pidOf(id), start: 1 }))
    },
    async dump(located, directory, { signal, beforeStop, onStopped }) {
      const pod = podOf(located.pod.uid)
      signal.throwIfAborted()
      await beforeStop?.()
      if (!isOf(pod, located)) throw new AgentError('ProcessGone')
      onStopped?.()
      const takenAt = time.now()
      const image = new Map<string, Memory>()
      for (const { name } of located.containers) {
        const app = pod.containers.find(each => each.name === name)?.app
        if (app === undefined) throw new AgentError('ProcessGone')
        image.set(name, memoryNow(app, takenAt))
      }
      const wall = clock.now()
      await clock.sleep(10 + random.next() * 60)
      if (!isOf(pod, located)) throw new AgentError('ProcessGone')
      machine.images.set(directory, image)
      return {
        ...{
          takenAt: new Date(wall).toISOString(),
          frozenSeconds: 0.02,
          skewSeconds: 0,
          criu: '4',
          kernel: '6',
        },
        ...{ architecture: 'x86_64', volumes: [] },
        containers: located.containers.map(({ name, imageId }) => ({
          ...{ name, imageId, rootPid: 1, credentials: [], memoryBytes: 4096, frozenMicroseconds: 1 },
          stdio: { 0: '', 1: '', 2: '' },
        })),
      }
    },
    async restore(located, from, { signal }) {
      const pod = podOf(located.pod.uid)
      if (clones.has(pod.uid)) await endClone(pod.uid)
      await clock.sleep(30 + random.next() * 300 + machine.slowRestoreMs, signal)
      if (!isOf(pod, located)) throw new AgentError('NotRunning')
      if (machine.refusesRestores) throw new AgentError('RestoreFailed', 'refused')
      const image = machine.images.get(from.dir)
      if (image === undefined) throw new AgentError('RestoreFailed', 'no such image')
      for (const container of pod.containers) {
        const memory = image.get(container.name)
        if (memory === undefined) continue
        if (!container.holds || container.app !== undefined)
          throw new AgentError('RestoreFailed', 'something runs there')
        container.app = { memory, runsSince: undefined }
      }
      const { slot, generation, epoch: ofEpoch } = from.manifest
      const clone: Clone = {
        ...{ podUid: pod.uid, slot, generation, epoch: ofEpoch, stage: 'Frozen' },
        containers: located.containers.map(({ name, init, containerId }) => ({
          ...{ name, hold: init, pidBelowHold: 2, app: { pid: pidOf(containerId), start: 2 } },
        })),
      }
      clones.set(pod.uid, clone)
      return clone
    },
    async thaw(clone) {
      await clock.sleep(2)
      const pod = machine.pods.get(clone.podUid)
      if (pod === undefined || pod.killed || !clones.has(clone.podUid)) throw new AgentError('CloneLost')
      // A new agent may report an app as thawed that runs already.
      let lay = false
      for (const { name } of clone.containers) {
        const container = pod.containers.find(each => each.name === name)
        if (container?.app === undefined || !container.up) throw new AgentError('CloneLost')
        if (isToRun(pod, container.app)) continue
        lay = true
        container.app.hangsUntil = time.now() + machine.slowAnswerMs
        letRun(pod, container.app, time.now())
      }
      const thawed: Clone = { ...clone, stage: 'Thawed' }
      clones.set(clone.podUid, thawed)
      if (lay) options.thawed(pod, thawed)
      return thawed
    },
    async settle(clone) {
      const { pages: _, ...whole } = clone
      return whole
    },
    discard: clone => endClone(clone.podUid),
    async clonesOf({ pod }) {
      await clock.sleep(1)
      const clone = clones.get(pod.uid)
      const there = machine.pods.get(pod.uid)
      const isThere = there?.containers.some(({ holds, app }) => holds && app !== undefined) === true
      return isThere ? clone : undefined
    },
  }
}

const isThawed = (clones: Clones, pod: PodOnNode, holds: boolean) =>
  !holds || clones.get(pod.uid)?.stage === 'Thawed'

/** In practice distinct for containers that exist at the same time. */
export const pidOf = (containerId: string): number => {
  let sum = 7
  // Watch names contain only a part of the id.
  for (const char of containerId.replace(/^.*:\/\//, '').slice(0, 16))
    sum = (sum * 31 + char.charCodeAt(0)) % 1_000_000_007
  return sum
}
