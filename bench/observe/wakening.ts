import { gateContainerName } from '../../src/backuppodset/pod/gate-container.ts'
import type { Pod } from '../../src/kube/resources.ts'
import type { PlegEvent } from './kubelet-log.ts'
import type { Stamped } from './recording.ts'
import { gateEnded, isReady } from './state.ts'

/** Who waited for whom while one cold backup became a running pod. Unix ms. */
export interface Wakening {
  /** The gate's clock when it accepted the message. */
  readonly woken: number
  /** The kubelet hears that the gate has ended: from its relist (its log), else from the status it writes. */
  readonly noticed: number
  readonly ready: number
}

/**
 * @param pleg of the node the pod is on; undefined where its log is not at hand
 * @throws Error when one of the steps was not seen
 */
export function wakeningOf(
  uid: string,
  woken: number | undefined,
  events: readonly Stamped<Pod>[],
  pleg: readonly PlegEvent[] | undefined,
): Wakening {
  const own = events.filter(({ object }) => object.metadata.uid === uid)
  const ended = own.find(({ object }) => gateEnded(object))
  const ready = own.find(({ object }) => isReady(object))
  if (woken === undefined) throw new Error('the gate has not logged that it was woken')
  if (ended === undefined || ready === undefined)
    throw new Error('the watch does not show the end of the gate')
  if (pleg === undefined) return { woken, noticed: ended.at, ready: ready.at }
  const id = gateId(ended.object)
  const died = pleg.find(
    event => event.podUid === uid && event.type === 'ContainerDied' && event.containerId === id,
  )
  if (died === undefined) throw new Error('the kubelet has not logged the end of the gate')
  return { woken, noticed: died.at, ready: ready.at }
}

/** Without the runtime's name in front (`containerd://`). */
const gateId = (pod: Pod): string | undefined =>
  pod.status?.initContainerStatuses
    ?.find(({ name }) => name === gateContainerName)
    ?.containerID?.replace(/^.*:\/\//, '')
