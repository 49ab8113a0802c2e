/** The acts of a plan. Each is announced by the status of its job, carries preconditions, and may be repeated. */

import { migrations } from '../../api/migration.ts'
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { jobConditions } from '../../api/pod-migration-job.ts'
import { isKubeError, messageOf } from '../../kube/errors.ts'
import { apiVersionOf } from '../../kube/resources.ts'
import type { Action, JobView } from '../decide/view.ts'
import { failed, statusAfter, type Word } from '../decide/word.ts'
import { deleteOptionsOf, evict, finalCodes, shorten, withdraw } from './evict.ts'
import type { Performer } from './performer.ts'
import { NoReservation } from './placed.ts'
import { preempt } from './preempt.ts'
import {
  adopt,
  createReservation,
  deleteReservation,
  noReservation,
  referTo,
  restoreDeletionCost,
} from './reserve.ts'

/** Pause between two requests for one eviction, ms: a disruption budget changes when pods become ready. */
export const evictPauseMs = 5_000

/** @returns ms after which the evictions that have to wait may be requested; undefined: none waits. */
export async function perform(
  actions: readonly Action[],
  args: MigrationControllerArgs,
  performer: Performer,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { requests, evictions } = performer
  const due: Extract<Action, { type: 'evict' }>[] = []
  const waits: number[] = []
  const others: Promise<void>[] = []
  let left = evictions.available(args.evict)
  for (const action of actions) {
    if (action.type !== 'evict') {
      others.push(write(action, args, performer, signal))
      continue
    }
    const restMs = evictPauseMs - requests.sinceMs(action.view.uid)
    if (restMs > 0) waits.push(restMs)
    else if (left < 1) waits.push(1_000 / args.evict.perSecond)
    else {
      left -= 1
      due.push(action)
    }
  }
  evictions.take(due.length)
  const results = await Promise.allSettled([
    ...due.map(action => evict(action, args, performer, signal)),
    ...others,
  ])
  signal.throwIfAborted()
  const failure = results.find(result => result.status === 'rejected')
  if (failure !== undefined) throw failure.reason
  return waits.length === 0 ? undefined : Math.max(1, Math.min(...waits))
}

async function write(
  action: Exclude<Action, { type: 'evict' }>,
  args: MigrationControllerArgs,
  performer: Performer,
  signal: AbortSignal,
): Promise<void> {
  const { api, writer, clock } = performer
  switch (action.type) {
    case 'createReservation':
      await orFail(createReservation(api, action, signal), action, performer, signal)
      return
    case 'referTo':
      await orFail(referTo(api, action, signal), action, performer, signal)
      return
    case 'adopt':
      await orFail(adopt(api, action, deleteOptionsOf(action.view, args), signal), action, performer, signal)
      return
    case 'preempt':
      await orFail(
        preempt(api, action, deleteOptionsOf(action.view, args), signal),
        action,
        performer,
        signal,
        refusedPreemption,
      )
      return
    case 'shorten':
      await shorten(api, action, deleteOptionsOf(action.view, args), signal)
      return
    case 'restoreDeletionCost':
    case 'withdraw': {
      const undone =
        action.type === 'withdraw' ? withdraw(api, action, signal) : restoreDeletionCost(api, action, signal)
      await undone.catch(async (error: unknown) => {
        if (!isKubeError(error) || !finalCodes.includes(error.code)) throw error
        await writer.write(action.view, statusAfter(action.view, action.end, clock.now()), signal)
      })
      return
    }
    case 'deleteReservation':
      await deleteReservation(api, action, signal)
      return
    case 'createMigration':
      await api
        .create(migrations, migrationOf(action), { namespace: action.pod.namespace, signal })
        // The cache is behind, or another object has the name: the next pass sees which.
        .catch(unless('AlreadyExists'))
      return
    case 'deleteMigration': {
      const { namespace, name, uid, resourceVersion } = action
      // With the version: a Migration whose slot has changed hands meanwhile stays.
      await api
        .delete(migrations, { namespace, name }, { uid, resourceVersion }, { signal })
        .catch(unless('NotFound', 'Conflict'))
      return
    }
    default:
      return action satisfies never
  }
}

/** Another request would fail as well: the job ends with the reason. */
async function orFail(
  act: Promise<void>,
  { view }: Pick<Action, 'view'>,
  { writer, clock }: Performer,
  signal: AbortSignal,
  refused: (message: string) => Word = message => noReservation('FailedCreateReservation', message),
): Promise<void> {
  try {
    await act
  } catch (error) {
    const isFinal = isKubeError(error) ? finalCodes.includes(error.code) : error instanceof NoReservation
    if (!isFinal) throw error
    const message = messageOf(error)
    const word = error instanceof NoReservation ? noReservation(error.reason, message) : refused(message)
    await writer.write(view, statusAfter(view, word, clock.now()), signal)
  }
}

const refusedPreemption = (message: string): Word => ({
  ...failed('Unschedulable', `the operator may not create a job for a pod that gives way: ${message}`),
  condition: { type: jobConditions.preemption, status: 'False' },
})

const unless =
  (...codes: Parameters<typeof isKubeError>[1][]) =>
  (error: unknown): void => {
    if (!isKubeError(error, ...codes)) throw error
  }

function migrationOf({ view, pod, name }: Extract<Action, { type: 'createMigration' }>) {
  const nodeSelector = view.parsed.ok ? view.parsed.job.placement.nodeSelector : undefined
  return {
    apiVersion: apiVersionOf(migrations),
    kind: migrations.kind,
    metadata: { name, ownerReferences: [ownerOf(view)] },
    spec: {
      source: { name: pod.name, uid: pod.uid },
      ...(nodeSelector !== undefined && { addedNodeSelector: nodeSelector }),
    },
  }
}

/** A job that is deleted takes its Migration with it, which calls the move off. */
const ownerOf = ({ resource, name, uid }: JobView) =>
  ({ apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, controller: true }) as const
