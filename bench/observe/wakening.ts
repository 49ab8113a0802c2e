import { gateOf } from '../../src/api/gate.ts'
import type { Pod } from '../../src/kube/resources.ts'
import type { Stamped } from './recording.ts'
import { isReady } from './state.ts'

/** Who waited for whom while one cold backup became a running pod. Unix ms. */
export interface Wakening {
  /** The gate's clock when it accepted the message. */
  readonly woken: number
  /** The watch shows that the kubelet knows that the gate has opened. */
  readonly noticed: number
  readonly ready: number
}

/** @throws Error when one of the steps was not seen */
export function wakeningOf(
  uid: string,
  woken: number | undefined,
  events: readonly Stamped<Pod>[],
): Wakening {
  const own = events.filter(({ object }) => object.metadata.uid === uid)
  const opened = own.find(({ object }) => gateOf(object)?.opened)
  const ready = own.find(({ object }) => isReady(object))
  if (woken === undefined) throw new Error('the gate has not logged that it was woken')
  if (opened === undefined || ready === undefined)
    throw new Error('the watch does not show that the gate opened and the pod became Ready')
  return { woken, noticed: opened.at, ready: ready.at }
}
