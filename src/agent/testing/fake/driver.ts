import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../../api/agent-errors.ts'
import type { ContainerImage } from '../../../checkpoint/manifest.ts'
import { systemClock as clock } from '../../../kube/clock.ts'
import type { Clone, LocatedPod, MemoryDriver } from '../../criu/memory-driver.ts'
import type { FakeMemory } from './memory.ts'

export const pidOf = (uid: string): number =>
  [...uid].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 100_000, 7)

const imageOf = (
  { name, imageId }: LocatedPod['containers'][number],
  memoryBytes: number,
): ContainerImage => ({
  ...{ name, imageId, rootPid: 1, stdio: { 0: '', 1: '', 2: '' }, credentials: [] },
  ...{ memoryBytes, frozenMicroseconds: 1 },
})

export function fakeDriver(memory: FakeMemory): MemoryDriver {
  /** Fails if another operation works on the same pod at the same time. */
  const alone = async <T>(uid: string, run: () => Promise<T>): Promise<T> => {
    if (memory.busy.has(uid)) throw new Error(`two at once in ${uid}`)
    memory.busy.add(uid)
    try {
      await clock.sleep(1)
      return await run()
    } finally {
      memory.busy.delete(uid)
    }
  }
  return {
    async locate(pod): Promise<LocatedPod> {
      const process = { pid: pidOf(pod.uid), start: 1 }
      if (pod.promoted && memory.voters.asleep.has(pod.uid)) throw new AgentError('HoldUnavailable')
      if (!pod.promoted && !memory.running.has(pod.uid)) throw new AgentError('NotRunning')
      return {
        pod,
        containers: pod.containers.map(each => ({
          ...each,
          ...{ init: process, app: process, depth: 1, cgroups: [`kubepods/pod${pod.uid}/${each.name}`] },
        })),
      }
    },
    firstProcesses: async uid => (memory.running.has(uid) ? [{ pid: pidOf(uid), start: 1 }] : []),
    dump: ({ pod, containers }, directory, { signal, beforeStop, onStopped, isRecordRequested }) =>
      alone(pod.uid, async () => {
        if (memory.coming.has(pod.uid)) throw new AgentError('PagesComing')
        await beforeStop?.()
        const word = memory.running.get(pod.uid)
        if (word === undefined) throw new AgentError('ProcessGone')
        memory.counts.dumps += 1
        if (isRecordRequested === true) memory.recorded.add(pod.uid)
        await writeFile(join(directory, 'word'), word)
        memory.atStop()
        onStopped?.()
        await memory.duringDump(pod.uid)
        signal.throwIfAborted()
        return {
          ...{
            takenAt: new Date().toISOString(),
            frozenSeconds: memory.frozenSeconds,
            skewSeconds: 0,
            criu: '4',
            kernel: '6',
          },
          ...{ architecture: 'x86_64', volumes: [] },
          containers: memory.dumpBytes === 0 ? [] : containers.map(each => imageOf(each, memory.dumpBytes)),
        }
      }),
    recordsOnRequest: () => memory.recordsOnRequest,
    endRecord: async uid => void memory.recorded.delete(uid),
    restore: ({ pod, containers }, from, { lazily }) =>
      alone(pod.uid, async () => {
        const word = await readFile(join(from.dir, 'word'), 'utf8')
        memory.beforeRestore()
        memory.counts.restores += 1
        if (lazily !== undefined) memory.counts.lazyRestores += 1
        const broken = memory.broken.get(word)
        if (broken !== undefined) throw new AgentError(broken, word)
        const { slot, generation, epoch } = from.manifest
        const isComing = lazily !== undefined && memory.coming.has(pod.uid)
        const server = {
          container: 'app',
          server: { pid: 1, start: 1 },
          work: join(memory.directory, 'work'),
        }
        const clone: Clone = {
          ...{ podUid: pod.uid, slot, generation, epoch, stage: 'Frozen' },
          containers: containers.map(({ name, init }) => ({ name, hold: init, app: init, pidBelowHold: 2 })),
          ...(isComing && { pages: { servers: [server], directory: `${pod.uid}-${generation}` } }),
        }
        memory.clones.set(pod.uid, { clone, word })
        return clone
      }),
    thaw: clone =>
      alone(clone.podUid, async () => {
        const there = memory.clones.get(clone.podUid)
        if (there === undefined) throw new AgentError('CloneLost')
        memory.counts.thaws += 1
        if (memory.unthawed.delete(there.word)) throw new AgentError('ThawFailed', there.word)
        const thawed: Clone = { ...clone, stage: 'Thawed' }
        memory.clones.set(clone.podUid, { clone: thawed, word: there.word })
        memory.running.set(clone.podUid, there.word)
        return thawed
      }),
    async settle(clone, signal) {
      const ended = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      await Promise.race([memory.coming.get(clone.podUid), ended])
      memory.coming.delete(clone.podUid)
      const { pages: _, ...whole } = clone
      return whole
    },
    discard: clone =>
      alone(clone.podUid, async () => {
        memory.counts.discards += 1
        for (const name of memory.watches.keys())
          if (name.startsWith(`${clone.podUid}/`)) memory.mourned.push(name)
        memory.clones.delete(clone.podUid)
        if (clone.stage === 'Thawed') memory.running.delete(clone.podUid)
      }),
    clonesOf: async ({ pod }) => memory.clones.get(pod.uid)?.clone,
  }
}
