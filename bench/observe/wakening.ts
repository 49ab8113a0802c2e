import { gateOf } from '../../src/api/gate.ts'
import type { Pod } from '../../src/kube/resources.ts'
import type { Stamped } from './recording.ts'
import { isReady } from './state.ts'

/** Steps of one cold backup's way to a running pod. Unix ms. */
export interface Wakening {
  /** By the gate's clock, when it accepted the message. */
  readonly woken: number
  /** When the watch showed that the kubelet had noticed the open gate. */
  readonly noticed: number
  readonly ready: number
}

/** @throws Error if one of the steps was not observed */
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
