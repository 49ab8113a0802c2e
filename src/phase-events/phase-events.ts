/** Events for people about objects that have a phase: one for each change of it, from what the status says. */
import { referenceTo } from '../kube/event-record.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Recorder } from '../kube/recorder.ts'
import type { Resource } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'

/** The words of a status. Two that differ in phase or reason differ for people. */
export interface Said {
  readonly phase: string
  /** In CamelCase. */
  readonly reason: string
  readonly message: string
  /** It is a failure: the type of its event is Warning. */
  readonly isBad: boolean
}

export interface PhaseEventsOptions {
  readonly recorder: Pick<Recorder, 'record'>
  /** Only the leader records: the statuses are its own. */
  readonly leads: () => boolean
}

/**
 * Follows a cache, so that no controller knows of events. An object that the cache shows for the first time has no event: its phase
 * may be old. A change that this process has not seen, because it led only afterwards, has none either.
 *
 * @param saidOf undefined: there is nothing to tell yet
 */
export function recordPhases<T extends KubeObject>(
  { recorder, leads }: PhaseEventsOptions,
  resource: Resource<T>,
  store: Pick<Store<T>, 'subscribe'>,
  saidOf: (object: T) => Said | undefined,
): void {
  store.subscribe(({ type, object, old }) => {
    if (type !== 'updated' || !leads()) return
    const said = saidOf(object)
    const before = saidOf(old)
    if (said === undefined || (said.phase === before?.phase && said.reason === before.reason)) return
    recorder.record({
      regarding: referenceTo(resource, object),
      type: said.isBad ? 'Warning' : 'Normal',
      reason: said.reason,
      action: said.phase,
      note: said.message,
    })
  })
}
