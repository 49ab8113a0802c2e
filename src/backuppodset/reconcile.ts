import type { BackupPodSet } from '../api/backuppodset.ts'
import { memoryNotAllowed } from '../api/memory-permission.ts'
import type { ParsedSet } from '../api/parse.ts'
import { reasons } from '../api/reasons.ts'
import type { Api } from '../kube/api.ts'
import type { ConsistencyStore } from '../kube/consistency.ts'
import type { Queue } from '../kube/queue.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/reconcile.ts'
import type { Store } from '../kube/store.ts'
import { slotLeasesOf } from '../slot/observe/slot-leases.ts'
import { type AbandonedDeps, abandonedOf, pauseAll } from './abandoned.ts'
import type { RefusedSpec } from './in-force.ts'
import { askPermission, isPermitted } from './memory/permission.ts'
import { type Missing, missingMessage, missingMs, statusOfMissing } from './missing.ts'
import { makePass, type PassDeps, type Passing } from './pass.ts'
import type { SetRecord } from './set-record.ts'
import { refusedStatus } from './status.ts'
import { refusalNotices } from './update-status.ts'

export interface ReconcileDeps extends PassDeps, Pick<AbandonedDeps, 'writePolicy'> {
  readonly sets: Pick<Store<BackupPodSet>, 'get'>
  /** Returns the record of the set that the cache shows under this key; undefined: it shows none. */
  readonly recordOf: (setKey: string) => SetRecord | undefined
  /** For questions that the caches cannot answer. */
  readonly api: Pick<Api, 'get'>
  readonly consistency: Pick<ConsistencyStore, 'ready' | 'onReady'>
  readonly queue: Pick<Queue, 'add'>
  /**
   * Kinds of objects that sets with memory need and that have no complete list yet. Without Leases and node reports,
   * the memory of every slot would look lost.
   */
  readonly missingForMemory: () => readonly Missing[]
  /** No set has this name any more. */
  readonly forgetName: (setKey: string) => void
}

/** Interval at which a pass checks for its own writes in the caches, ms, in case the notification is missed. */
const behindMs = 5_000

/**
 * Makes one pass over one set: observe, decide, act, report. Failures are returned together with the time of the next
 * pass, not instead of it: a quota that blocks creations must not stop the timeout of a primary that hangs.
 */
export async function reconcile(
  deps: ReconcileDeps,
  key: string,
  context: ReconcileContext,
): Promise<Result> {
  const { log, signal } = context
  if (!isCaughtUp(deps, key, context.priority)) return { requeueAfterMs: behindMs }
  const current = deps.sets.get(key)
  const record = deps.recordOf(key)
  const abandoned = abandonedOf(deps, key, current)
  if (abandoned.length > 0) await pauseAll(deps, key, abandoned, signal)
  if (current === undefined || record === undefined || current.metadata.deletionTimestamp !== undefined) {
    // The garbage collector deletes its pods by their owner references; no pass creates any in this time.
    if (current === undefined) deps.forgetName(key)
    return {}
  }
  if (record.namespace.isKnown()) return {}
  const inForce = record.spec.inForce(current)
  const refused = (refusal: RefusedSpec) => refuse(deps, { current, record, refusal, context })
  if (inForce.type === 'nothing') return refused(inForce.refusal)
  const { set } = inForce
  const refusal = inForce.type === 'asWritten' ? undefined : inForce.refusal
  if (refusal) log.warn({ code: refusal.code }, refusal.message)
  if (set.memory) await assertNothingMissing(deps, current, record, signal)
  if (set.memory && !mayHaveMemory(set, deps)) {
    if (await askPermission(deps.api, set.namespace, signal))
      throw new RetryLater(50, 'the cache does not show the label of the namespace yet')
    return refused({ code: reasons.memoryNotAllowed, message: memoryNotAllowed })
  }
  if (set.pull && !record.pulled.loaded(set, current.status))
    throw new RetryLater(50, 'the states of an earlier operator are still loading')
  log.debug({ generation: set.generation }, 'reconciling')
  record.failoverHistory.open(current.status)
  if (set.memory) await record.claims.look(set, signal)
  const isSpecPartial = inForce.type === 'takeovers'
  return makePass(deps, { current, set, record, refusal, isSpecPartial, context })
}

/** Returns whether the caches contain this process' writes for the set. If not, the set is requeued when they do. */
function isCaughtUp({ consistency, queue }: ReconcileDeps, key: string, priority: number): boolean {
  if (consistency.ready(key)) return true
  consistency.onReady(key, () => queue.add(key, { priority }))
  return false
}

/**
 * @throws RetryLater while a list is missing. If that lasts, the status says so, for the set has no failover in this
 *   time.
 */
async function assertNothingMissing(
  deps: ReconcileDeps,
  current: BackupPodSet,
  record: SetRecord,
  signal: AbortSignal,
): Promise<void> {
  const missing = deps.missingForMemory()
  const since = record.since.caches.pass()('missing', missing.length > 0)
  if (missing.length === 0) return
  if (since !== undefined && deps.clock.monotonic() - since >= missingMs) {
    const { generation = 0 } = current.metadata
    const status = statusOfMissing(generation, current.status, missing, deps.clock.now())
    await record.reporter.report(current, status, signal)
  }
  throw new RetryLater(500, missingMessage(missing))
}

/**
 * Where memory is not allowed, the operator does not start a set that asks for it. A set with existing slots keeps its
 * failovers, but no new generations are saved; see `observeMemory`.
 */
const mayHaveMemory = (set: ParsedSet, { memory }: ReconcileDeps): boolean =>
  memory === undefined ||
  isPermitted(memory.permitted, set.namespace) ||
  slotLeasesOf(memory.leases, set).length > 0

/** Reports what must change in a set that is unreadable or has nothing to manage, and leaves it alone otherwise. */
async function refuse(
  { clock, notify }: ReconcileDeps,
  {
    current,
    record,
    refusal,
    context: { log, signal },
  }: Pick<Passing, 'current' | 'record' | 'context'> & { readonly refusal: RefusedSpec },
): Promise<Result> {
  log.warn({ code: refusal.code }, refusal.message)
  const status = refusedStatus(current.metadata.generation ?? 0, current.status, refusal, clock.now())
  const { written, againAfterMs } = await record.reporter.report(current, status, signal)
  if (written === undefined) return againAfterMs === undefined ? {} : { requeueAfterMs: againAfterMs }
  notify(current, refusalNotices(current.status, refusal))
  return {}
}
