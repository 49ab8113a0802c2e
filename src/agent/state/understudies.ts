/** This node's knowledge of the processes in its pods: where they are, and which clones are in its understudies. */
import type { SlotKey } from '../../api/slot-key.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Clone, LocatedPod, MemoryDriver, PodTarget } from '../criu/memory-driver.ts'
import { idsOf } from '../observe/pod-facts.ts'
import type { PodView, StageView } from '../observe/snapshot.ts'
import { createEarlyEnds, type EarlyEnds, type Generation } from './early-ends.ts'

/** All entries belong to the present containers of a pod: after a restart of one of them the pod is another place. */
export interface Understudies {
  /** Finds the pod's processes and the clone that an earlier agent left; remembered while the containers live. */
  enter(pod: PodView, signal: AbortSignal): Promise<Place>
  /** Forgets the location of the pod's processes, not its clone: the next `enter` locates them again. */
  lookAgain(uid: string): void
  /** By uid, for pods whose containers have not changed since. */
  stages(pods: readonly PodView[]): ReadonlyMap<string, StageView>
  /** Uids of understudies in which nothing can be restored any more. */
  spoiled(pods: readonly PodView[]): ReadonlySet<string>
  /** Notes that the app that was resumed in this pod has ended before it answered. */
  endedEarly(uid: string): void
}

export interface Place {
  readonly located: LocatedPod
  /** The clone in the pod. */
  readonly clone: Clone | undefined
  /** Notes the clone that is in the pod from now on. */
  put(clone: Clone | undefined): void
  /** The clone is taken away for a newer one of the same slot; `stages` shows it until then. */
  replace(): void
  /** Notes that an earlier memory has left something there that cannot be removed. */
  spoil(): void
  /** Notes that the app of this generation has ended before it answered; counts once for the present containers. */
  endedEarly(generation: Generation): void
  /** See `EarlyEnds`. */
  barredUntil(generation: Generation): ReturnType<EarlyEnds['barredUntil']>
  /** The clone is on stage, and its pod's condition says so. */
  arrive(clone: Clone): void
}

interface Entry {
  readonly ids: string
  located: Promise<LocatedPod> | undefined
  /** The search for a clone of an earlier agent is done. */
  searched: boolean
  clone: Clone | undefined
  /** The clone that `stages` shows; while it is being replaced, the old one. */
  shown: Clone | undefined
  arrived: boolean
  spoiled: boolean
}

export function createUnderstudies(
  driver: Pick<MemoryDriver, 'locate' | 'clonesOf'>,
  clock: Pick<Clock, 'now' | 'monotonic'>,
  changed: () => void,
  /** Called with the clone that is in a pod now, no matter which task or agent put it there. */
  noted: (uid: string, clone: Clone | undefined) => void = () => undefined,
): Understudies {
  const entries = new Map<string, Entry>()
  const earlyEnds = createEarlyEnds(clock)

  const entryOf = (pod: PodView): Entry => {
    const ids = idsOf(pod)
    const known = entries.get(pod.uid)
    if (known?.ids === ids) return known
    const entry: Entry = {
      ids,
      located: undefined,
      searched: !pod.understudy,
      clone: undefined,
      shown: undefined,
      arrived: false,
      spoiled: false,
    }
    entries.set(pod.uid, entry)
    return entry
  }

  const locate = async (entry: Entry, pod: PodView, signal: AbortSignal): Promise<LocatedPod> => {
    if (entry.located !== undefined) {
      try {
        return await entry.located
      } catch {
        // Another task's attempt failed, perhaps because its signal fired: make an attempt of our own.
      }
    }
    const located = driver.locate(targetOf(pod), signal)
    entry.located = located
    try {
      return await located
    } catch (error) {
      if (entry.located === located) entry.located = undefined
      throw error
    }
  }

  const placeOf = (entry: Entry, { uid }: PodView, located: LocatedPod): Place => ({
    located,
    get clone() {
      return entry.clone
    },
    put(clone) {
      entry.clone = clone
      entry.shown = clone
      entry.arrived = false
      noted(uid, clone)
      changed()
    },
    replace() {
      entry.clone = undefined
      noted(uid, undefined)
    },
    spoil() {
      entry.spoiled = true
      changed()
    },
    endedEarly: generation => earlyEnds.note(uid, entry.ids, generation),
    barredUntil: generation => earlyEnds.barredUntil(uid, generation),
    arrive(clone) {
      entry.clone = clone
      entry.shown = clone
      entry.arrived = true
      noted(uid, clone)
      // The app runs below `hold` from now on: the next task that needs it locates it.
      entry.located = undefined
      changed()
    },
  })

  return {
    async enter(pod, signal) {
      const entry = entryOf(pod)
      const located = await locate(entry, pod, signal)
      if (!entry.searched) {
        const clone = await driver.clonesOf(located)
        // Two tasks may have searched at once; the earlier finding may be stale by now.
        if (!entry.searched) {
          entry.searched = true
          entry.clone = clone
          entry.shown = clone
          if (clone !== undefined) {
            noted(pod.uid, clone)
            changed()
          }
        }
      }
      return placeOf(entry, pod, located)
    },
    lookAgain(uid) {
      const entry = entries.get(uid)
      if (entry !== undefined) entry.located = undefined
    },
    stages(pods) {
      const found = new Map<string, StageView>()
      const live = new Set(pods.map(({ uid }) => uid))
      for (const uid of [...entries.keys()]) if (!live.has(uid)) entries.delete(uid)
      earlyEnds.keep(live)
      for (const pod of pods) {
        const entry = entries.get(pod.uid)
        if (entry?.shown === undefined || entry.ids !== idsOf(pod)) continue
        const { slot, epoch, generation, stage } = entry.shown
        found.set(pod.uid, {
          slot: slotName(slot),
          epoch,
          generation,
          state: entry.arrived ? 'OnStage' : stage,
        })
      }
      return found
    },
    endedEarly(uid) {
      const entry = entries.get(uid)
      // The news may be faster than the answer to the thaw, so the clone may still count as frozen.
      if (entry?.clone !== undefined) earlyEnds.note(uid, entry.ids, entry.clone)
    },
    spoiled: pods =>
      new Set(
        pods.flatMap(pod => {
          const entry = entries.get(pod.uid)
          return entry?.spoiled === true && entry.ids === idsOf(pod) ? [pod.uid] : []
        }),
      ),
  }
}

export const targetOf = (pod: PodView): PodTarget => ({
  namespace: pod.namespace,
  name: pod.name,
  uid: pod.uid,
  ip: pod.ip ?? '',
  containers: pod.containers.map(({ name, containerId = '', imageId }) => ({ name, containerId, imageId })),
  promoted: pod.understudy,
})

export const isOf = (clone: Clone | undefined, slot: SlotKey): clone is Clone =>
  clone !== undefined && slotName(clone.slot) === slotName(slot)
