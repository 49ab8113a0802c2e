/** What this node knows of the processes in its pods: where they are, and what lies in its understudies. */
import type { SlotKey } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clone, LocatedPod, MemoryDriver, PodTarget } from '../driver/memory-driver.ts'
import { idsOf } from './duties-of.ts'
import type { PodView, StageView } from './snapshot.ts'

/** Everything is of the containers that a pod has now: another life of one of them is another place. */
export interface Understudies {
  /** Finds the pod's processes, and what an earlier agent left in it; remembered while its containers live. */
  enter(pod: PodView, signal: AbortSignal): Promise<Place>
  /** Forgets where its processes are, not what lies there: the next `enter` looks again. */
  lookAgain(uid: string): void
  /** By uid, of containers that are still the ones that were seen. */
  stages(pods: readonly PodView[]): ReadonlyMap<string, StageView>
  /** Uids of those in which nothing can be brought back any more. */
  spoiled(pods: readonly PodView[]): ReadonlySet<string>
}

export interface Place {
  readonly located: LocatedPod
  /** What lies there. */
  readonly clone: Clone | undefined
  /** Notes what lies there from now on. */
  put(clone: Clone | undefined): void
  /** What lies there is taken away, and a newer one of the same slot follows: to others it goes on lying there. */
  replace(): void
  /** An earlier memory has left there what cannot be taken away. */
  spoil(): void
  /** It is on stage, and those who have to know have been told. */
  arrive(clone: Clone): void
}

interface Entry {
  readonly ids: string
  located: Promise<LocatedPod> | undefined
  /** What an earlier agent left there is known. */
  searched: boolean
  clone: Clone | undefined
  /** What others still see while it is being replaced. */
  shown: Clone | undefined
  arrived: boolean
  spoiled: boolean
}

export function createUnderstudies(
  driver: Pick<MemoryDriver, 'locate' | 'clonesOf'>,
  changed: () => void,
  /** Told what lies in a pod now, whoever has put it there. */
  noted: (uid: string, clone: Clone | undefined) => void = () => undefined,
): Understudies {
  const entries = new Map<string, Entry>()

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
        // The attempt of somebody else, whose signal may have ended it: one of our own follows.
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
    arrive(clone) {
      entry.clone = clone
      entry.shown = clone
      entry.arrived = true
      noted(uid, clone)
      // The app is below `hold` from now on: it is looked for when somebody needs it.
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
        // Two may have searched at once; the first one's finding may be out of date by now.
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
