import { backupPodSets } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import { type Pod, pods } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'
import { controllerOf } from './pod/owner.ts'

/**
 * Pods that left the cache and are still there. Only pods with the label of a set are watched, so the watch tells of one
 * whose label somebody took off as if it had been deleted; what remains is our name among its owners, which would have it
 * removed with the set.
 */
export interface Departed {
  /** To be called with every change of a pod, before the tombstones forget what we have deleted ourselves. */
  note(change: Change<Pod>): void
  /** From now on, until the signal fires, the API server is asked about those that left; about those before, too. */
  begin(signal: AbortSignal): void
  /** As they were when the API server was asked. */
  of(setKey: string): readonly Pod[]
  /** It has been let go. */
  forget(uid: string): void
  /** It is not any more what was known of it. */
  lookAgain(uid: string): void
}

export interface DepartedOptions {
  readonly api: Pick<Api, 'get'>
  readonly clock: Clock
  readonly log: Log
  readonly isDeleted: (uid: string) => boolean
  readonly changed: (setKey: string) => void
}

interface Left {
  readonly setKey: string
  readonly namespace: string
  readonly name: string
  /** Uid of the set that it was of: without it there is nothing to let go. */
  readonly owner: string | undefined
  /** Undefined: not asked about yet. */
  pod: Pod | undefined
}

const retryMs = 1_000
/** More than that many at once is no hand at work; whoever is not asked about is left to the garbage collector. */
const atMost = 1_000

export function createDeparted(options: DepartedOptions): Departed {
  const { api, clock, log, isDeleted, changed } = options
  const left = new Map<string, Left>()
  const asking = new Set<string>()
  let term: AbortSignal | undefined

  const ask = async (uid: string, signal: AbortSignal): Promise<void> => {
    for (let known = left.get(uid); known !== undefined && !signal.aborted; known = left.get(uid)) {
      const { setKey, namespace, name } = known
      try {
        const pod = await api.get(pods, { namespace, name }, { signal })
        // Another one, on its way out, or back: the watch tells of it.
        if (pod.metadata.uid !== uid || isGoing(pod) || pod.metadata.labels?.[labels.set] !== undefined) {
          left.delete(uid)
          return
        }
        if (controllerOf(pod)?.uid !== known.owner) {
          left.delete(uid)
          return
        }
        if (left.get(uid) !== known) continue
        known.pod = pod
        changed(setKey)
        return
      } catch (error) {
        if (signal.aborted) return
        if (isKubeError(error, 'NotFound')) {
          left.delete(uid)
          return
        }
        log.warn(
          { set: setKey, pod: name, err: error },
          'a pod left, and it is not known whether it is there',
        )
        await clock.sleep(retryMs, signal).catch(() => undefined)
      }
    }
  }
  const look = (uid: string) => {
    if (term === undefined || term.aborted || asking.has(uid)) return
    asking.add(uid)
    void ask(uid, term).finally(() => asking.delete(uid))
  }

  return {
    note({ type, object }) {
      const { uid, namespace = '', name } = object.metadata
      if (type !== 'deleted') {
        left.delete(uid)
        return
      }
      const setName = setOf(object)
      if (setName === undefined || isGoing(object) || isDeleted(uid) || left.size >= atMost) return
      const owner = controllerOf(object)?.uid
      left.set(uid, { setKey: `${namespace}/${setName}`, namespace, name, owner, pod: undefined })
      look(uid)
    },
    begin(signal) {
      term = signal
      for (const uid of left.keys()) look(uid)
    },
    of: setKey => [...left.values()].flatMap(each => (each.setKey === setKey && each.pod ? [each.pod] : [])),
    forget: uid => left.delete(uid),
    lookAgain(uid) {
      const known = left.get(uid)
      if (known === undefined) return
      known.pod = undefined
      look(uid)
    },
  }
}

const isGoing = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined

function setOf(pod: Pod): string | undefined {
  const controller = controllerOf(pod)
  const isOurs =
    controller?.kind === backupPodSets.kind && controller.apiVersion.startsWith(`${backupPodSets.group}/`)
  return isOurs ? controller.name : undefined
}
