/** The acts of a plan. Each is announced by the status of its job, carries preconditions, and may be repeated. */

import { migrations } from '../../api/migration.ts'
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { jobConditions } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError, type KubeErrorCode, messageOf } from '../../kube/errors.ts'
import { apiVersionOf, pathOf, pods } from '../../kube/resources.ts'
import { evictReasons } from '../decide/evict-directly.ts'
import type { Action, JobView } from '../decide/view.ts'
import { conditionOf, failed, statusAfter, type Word } from '../decide/word.ts'
import type { Requests } from './requests.ts'
import { adopt, createReservation, NoReservation, noReservation, restoreDeletionCost } from './reserve.ts'
import type { Tokens } from './tokens.ts'
import type { Writer } from './write-status.ts'

/** Pause between two requests for one eviction, ms: a disruption budget changes when pods become ready. */
export const evictPauseMs = 5_000

export interface Performer {
  readonly api: Pick<Api, 'get' | 'create' | 'patch' | 'delete' | 'request'>
  readonly writer: Writer
  readonly clock: Pick<Clock, 'now'>
  readonly evictions: Tokens
  readonly requests: Requests
  /** Called after each answer to a request for an eviction. */
  readonly noteEviction: (result: 'accepted' | 'refused' | 'failed') => void
}

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
      others.push(write(action, performer, signal))
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

/** By the Eviction API, which asks the disruption budgets, and with the uid: a namesake is another pod. */
async function evict(
  { view, pod }: Extract<Action, { type: 'evict' }>,
  { defaultDeleteOptions }: MigrationControllerArgs,
  { api, writer, clock, requests, noteEviction }: Performer,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = pod
  const given = (view.parsed.ok ? view.parsed.job.deleteOptions : undefined) ?? defaultDeleteOptions
  const deleteOptions = { ...given, preconditions: { ...given?.preconditions, uid } }
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions }
  const path = pathOf(pods, { namespace, name, subresource: 'eviction' })
  requests.note(view.uid, 'unanswered')
  const write = (word: Word) => writer.write(view, statusAfter(view, word, clock.now()), signal)
  try {
    await api.request('POST', path, { body, contentType: 'application/json', signal })
  } catch (error) {
    // The next pass sees that the pod is gone, or that another one has its name.
    if (isKubeError(error) && !error.ambiguous && error.code !== 'Aborted') requests.note(view.uid, 'none')
    if (isKubeError(error, 'NotFound')) return
    if (!isKubeError(error) || error.ambiguous || error.code === 'Aborted') throw error
    const isFinal = finalCodes.includes(error.code)
    noteEviction(isFinal ? 'failed' : 'refused')
    const word = isFinal ? failed(evictReasons.failed, error.message) : refusedNow(error.message)
    await write({ ...word, condition: { type: jobConditions.eviction, status: 'False' } })
    return
  }
  noteEviction('accepted')
  // From now on the job cannot be aborted. An abort that refuses this write comes too late: the next pass writes it again.
  requests.note(view.uid, 'accepted')
  if (conditionOf(view.status, jobConditions.eviction)?.reason === evictReasons.evicting) return
  const word = {
    phase: 'Running',
    reason: evictReasons.evicting,
    message: 'the pod is being deleted',
  } as const
  await write({ ...word, condition: { type: jobConditions.eviction, status: 'False' } })
}

/** Answers that another request would get as well. */
const finalCodes: readonly KubeErrorCode[] = ['Forbidden', 'Invalid', 'BadRequest']

const refusedNow = (message: string): Word => ({ phase: 'Running', reason: evictReasons.failed, message })

async function write(
  action: Exclude<Action, { type: 'evict' }>,
  { api, writer, clock }: Performer,
  signal: AbortSignal,
): Promise<void> {
  switch (action.type) {
    case 'createReservation':
      await createReservation(api, action, signal).catch(async (error: unknown) => {
        const isFinal = isKubeError(error) ? finalCodes.includes(error.code) : error instanceof NoReservation
        if (!isFinal) throw error
        const word = noReservation(messageOf(error))
        await writer.write(action.view, statusAfter(action.view, word, clock.now()), signal)
      })
      return
    case 'adopt':
      await adopt(api, action, signal)
      return
    case 'restoreDeletionCost':
      await restoreDeletionCost(api, action, signal).catch(async (error: unknown) => {
        if (!isKubeError(error) || !finalCodes.includes(error.code)) throw error
        await writer.write(action.view, statusAfter(action.view, action.end, clock.now()), signal)
      })
      return
    case 'deleteReservation':
      await api
        .delete(pods, { namespace: action.namespace, name: action.name }, preconditionsOf(action), { signal })
        .catch(unless('NotFound', 'Conflict'))
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

const preconditionsOf = ({
  uid,
  resourceVersion,
}: {
  readonly uid: string
  readonly resourceVersion: string
}) => ({
  ...{ uid, resourceVersion },
})

const unless =
  (...codes: Parameters<typeof isKubeError>[1][]) =>
  (error: unknown): void => {
    if (!isKubeError(error, ...codes)) throw error
  }

function migrationOf({ view, pod, name }: Extract<Action, { type: 'createMigration' }>) {
  return {
    apiVersion: apiVersionOf(migrations),
    kind: migrations.kind,
    metadata: { name, ownerReferences: [ownerOf(view)] },
    spec: { source: { name: pod.name, uid: pod.uid } },
  }
}

/** A job that is deleted takes its Migration with it, which calls the move off. */
const ownerOf = ({ resource, name, uid }: JobView) =>
  ({ apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, controller: true }) as const
