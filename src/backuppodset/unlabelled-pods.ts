import { backupPodSets } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import { controllerOf } from '../kube/owner.ts'
import { type Pod, pods } from '../kube/resources.ts'
import type { Change } from '../kube/store.ts'

/**
 * Pods that left the cache but still exist. The operator watches only pods with a set's label, so removing that label
 * looks like a deletion in the watch. Such a pod still has the set as its owner, so the garbage collector would delete
 * it together with the set.
 */
export interface UnlabelledPods {
  /** Call with every change of a pod, before the record of pending deletions forgets our own. */
  note(change: Change<Pod>): void
  /** Until the signal fires, asks the API server about each pod that leaves, and about those that left before. */
  begin(signal: AbortSignal): void
  /** Pods as the API server last returned them. */
  of(setKey: string): readonly Pod[]
  /** The pod has been released. */
  forget(uid: string): void
  /** The known state of the pod is stale: asks the API server again. */
  lookAgain(uid: string): void
}

export interface UnlabelledPodsOptions {
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
  /** Uid of the set that owned it. If it is undefined, there is nothing to release. */
  readonly owner: string | undefined
  /** Undefined: the API server has not answered yet. */
  pod: Pod | undefined
}

const retryMs = 1_000
/** So many at once is not manual editing. The garbage collector handles pods above this limit. */
const atMost = 1_000

export function createUnlabelledPods(options: UnlabelledPodsOptions): UnlabelledPods {
  const { api, clock, log, isDeleted, changed } = options
  const left = new Map<string, Left>()
  const asking = new Set<string>()
  let term: AbortSignal | undefined

  const ask = async (uid: string, signal: AbortSignal): Promise<void> => {
    for (let known = left.get(uid); known !== undefined && !signal.aborted; known = left.get(uid)) {
      const { setKey, namespace, name } = known
      try {
        const pod = await api.get(pods, { namespace, name }, { signal })
        // It is another pod, is being deleted, or has its label back: the watch reports each of these.
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
        log.warn({ set: setKey, pod: name, err: error }, 'cannot tell whether a departed pod still exists')
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
