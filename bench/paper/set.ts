import { type BackupPodSet, backupPodSets } from '../../src/api/backuppodset.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { type Pod, pods as podResource } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { sizesOf } from '../objects.ts'
import { openAuditLog } from '../observe/audit.ts'
import { type Recording, record, type Stamped } from '../observe/recording.ts'
import { isInPlace, isLeaving, kindOf } from '../observe/state.ts'
import { deletionAccepted, type PodWrite, podWrites, statusWrites } from '../observe/writes.ts'
import type { Controller } from './controller.ts'
import type { Operation } from './operations.ts'
import { type Timing, timingOf } from './timing.ts'

/** All observations of one operation on the set. Times are Unix ms. */
export interface SetTrial extends Timing {
  readonly requested: number
  readonly accepted: number
  readonly inPlace: number
  readonly statusWrites: number
  readonly writes: readonly PodWrite[]
  readonly events: readonly Stamped<Pod>[]
  /** The set's pods at the end. */
  readonly pods: readonly Pod[]
}

export interface SetRig {
  perform(operation: Operation): Promise<SetTrial>
  /** Deletes the set and waits until its pods are gone. */
  clear(): Promise<void>
}

const timeoutMs = 60_000
/** Pause between operations, as in the peer's measurement. */
const pauseMs = 2_000
/** The operator delays updates of mere counts by three seconds; they must not be charged to the next operation. */
const quietMs = 3_300
/**
 * The kubelet looks for ended containers once a second, and an operation often ends at such a moment. A random part of
 * this is added to the pause, so that operations begin at different phases of that second.
 */
export const relistMs = 1_000

export async function createSetRig(
  context: BenchContext,
  controller: Controller,
  ref: { readonly namespace: string; readonly name: string },
): Promise<SetRig> {
  const { api, clock, signal } = context
  const { namespace, name } = ref
  const options = { namespace, now: clock.now, signal }
  const [pods, sets] = await Promise.all([
    record(api, podResource, { ...options, labelSelector: controller.podsOf(name) }),
    record(api, backupPodSets, options),
  ])
  const { user } = controller
  const audit =
    user === undefined ? undefined : context.playground && openAuditLog(context.playground.auditLogPath)

  const request = async (operation: Operation, victim: Pod | undefined): Promise<void> => {
    switch (operation.action) {
      case 'create':
        await api.create(backupPodSets, controller.setOf(name, operation.to), { namespace, signal })
        return
      case 'resize':
        await api.patch(
          backupPodSets,
          ref,
          { type: 'merge', body: { spec: sizesOf(operation.to) } },
          { signal },
        )
        return
      case 'delete':
        await api.delete(
          podResource,
          { namespace, name: demand(victim, 'a primary').metadata.name },
          {},
          { signal },
        )
        return
      default:
        return operation satisfies never
    }
  }

  return {
    async perform(operation) {
      const passesSince = await controller.listen(ref)
      const known = new Map(pods.live)
      const knownSets = new Map(sets.live)
      const victim =
        operation.action === 'delete' ? [...known.values()].find(pod => kindOf(pod) === 'primary') : undefined
      pods.forget()
      sets.forget()
      await audit?.skip()
      clock.anchor()
      const reached = pods.next({
        what: `${operation.name} in place`,
        timeoutMs,
        holds: live => isGoing(live, victim) && isInPlace(live.values(), operation.to, controller.gate),
      })
      const requested = clock.now()
      await request(operation, victim)
      const answered = clock.now()
      const { at: inPlace } = await reached
      await systemClock.sleep(pauseMs, signal)
      await Promise.all([sets.quiet(quietMs), pods.quiet(pauseMs)])
      await systemClock.sleep(Math.random() * relistMs, signal)

      const writes = podWrites(known, pods.events).filter(
        ({ type, pod }) => !(type === 'deleted' && pod.metadata.uid === victim?.metadata.uid),
      )
      const timing = timingOf({
        requested,
        passes: await passesSince(requested),
        writes,
        audit: audit && (await audit.read()).filter(it => it.user === user && it.namespace === namespace),
      })
      return {
        ...timing,
        requested,
        accepted:
          victim === undefined ? answered : deletionAccepted(answered, victim.metadata.uid, pods.events),
        inPlace,
        statusWrites: statusWrites<BackupPodSet>(knownSets, sets.events),
        writes,
        events: pods.events,
        pods: [...pods.live.values()].filter(pod => !isLeaving(pod)),
      }
    },

    async clear() {
      if (sets.live.size > 0) await api.delete(backupPodSets, ref, {}, { signal })
      await emptied(pods, timeoutMs)
    },
  }
}

/** At 1/1/1 everything is still in place before the deletion has begun. */
const isGoing = (live: ReadonlyMap<string, Pod>, victim: Pod | undefined): boolean => {
  const current = victim && live.get(victim.metadata.uid)
  return current === undefined || isLeaving(current)
}

export async function emptied(pods: Recording<Pod>, withinMs: number): Promise<void> {
  if (pods.live.size === 0) return
  await pods.next({ what: 'all pods are gone', timeoutMs: withinMs, holds: live => live.size === 0 })
}
