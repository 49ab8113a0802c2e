import type { BackupPodSet } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import type { Log } from '../kube/log.ts'
import { keyOfRef } from '../kube/object.ts'
import type { Queue } from '../kube/queue.ts'
import type { ReconcileContext } from '../kube/reconcile.ts'
import type { EndpointSlice, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import type { TrackedOptions } from '../kube/tracked.ts'
import { awaitServing } from '../slot/act/await-serving.ts'
import type { InFlightPromotions } from '../slot/act/in-flight-promotions.ts'
import { createLife } from '../slot/act/life.ts'
import type { PendingDeletions } from '../slot/act/pending-deletions.ts'
import { readPodWith } from '../slot/act/read-pod.ts'
import type { Terms } from '../slot/act/term.ts'
import { openGate } from '../slot/gate/open-gate.ts'
import type { wake } from '../slot/gate/wake.ts'
import type { ActContext } from './act/context.ts'
import type { SetEvent } from './action-events.ts'
import type { SetMetrics } from './metrics.ts'
import type { Observed } from './observe.ts'
import { attemptsOf } from './outcomes.ts'
import { ownerOf } from './owner.ts'
import type { Outcome } from './plan.ts'
import type { PodSettings } from './pod/render.ts'
import { eventsOf } from './set-events.ts'
import type { SetRecord } from './set-record.ts'
import type { Setbacks } from './setbacks.ts'
import { trackedFor } from './tracked-for.ts'

export interface ActDeps {
  readonly api: Api
  readonly urgentApi: Api
  readonly consistency: TrackedOptions['consistency']
  readonly sets: Pick<Store<BackupPodSet>, 'get'>
  readonly pods: Store<Pod>
  readonly slices: Pick<Store<EndpointSlice>, 'get'>
  readonly settings: PodSettings
  readonly pendingDeletions: PendingDeletions
  readonly inFlightPromotions: InFlightPromotions
  readonly setbacks: Setbacks
  readonly terms: Terms
  readonly mayWrite: () => boolean
  readonly wake: typeof wake
  readonly instance: string
  readonly metrics: Pick<SetMetrics, 'acted' | 'woke'>
  readonly notify: (set: BackupPodSet, notices: readonly SetEvent[]) => void
  readonly queue: Pick<Queue, 'add'>
  readonly clock: Clock
  readonly log: Log
}

/** One pass over one set, as the executors of its plan need it. */
export interface Acting {
  readonly set: ParsedSet
  readonly record: SetRecord
  readonly observed: Observed
  readonly context: Pick<ReconcileContext, 'signal' | 'mustYield'>
}

/** Returns the dependencies of all executors, for one pass over one set. */
export function createActContext(deps: ActDeps, { set, record, observed, context }: Acting): ActContext {
  const { api, urgentApi, consistency, pods, clock, log, inFlightPromotions } = deps
  const key = keyOfRef(set)
  // A wake-up may outlive its pass, but not the term.
  const life = createLife([context.signal, deps.terms.current().leads])
  const { signal } = life
  const read = readPodWith(urgentApi)
  return {
    ...record.pulled.acts(set, signal),
    set,
    owner: ownerOf(set),
    service: set.service,
    wakeupTimeoutMs: set.wakeupTimeout * 1000,
    api: trackedFor(consistency, key, api),
    urgentApi: trackedFor(consistency, key, urgentApi),
    settings: deps.settings,
    pendingDeletions: deps.pendingDeletions,
    inFlightPromotions: {
      ...inFlightPromotions,
      start: (pod, to, role, conversion, finished) =>
        inFlightPromotions.start(
          pod,
          to,
          role,
          answered => life.during(() => conversion(answered)),
          finished,
        ),
    },
    signal,
    mayWrite: deps.mayWrite,
    mustYield: context.mustYield,
    isNamespaceTerminating: () => record.namespace.ask(signal),
    ended: life.end,
    podOf: uid => observed.pods.get(uid),
    requestedHandover: record.handoverTimes.wrote,
    sliceOf: name => deps.slices.get(keyOfRef({ namespace: set.namespace, name })),
    awaitServing: request => awaitServing(request, { pods, clock, read }),
    failedOnStage: deps.setbacks.note,
    monotonic: () => clock.monotonic(),
    now: () => clock.now(),
    instance: deps.instance,
    log,
    openGate: async request => {
      const started = clock.monotonic()
      const { wakeKeys } = deps.settings
      const result = await openGate(request, { pods, read, clock, wakeKeys, wake: deps.wake })
      deps.metrics.woke(result.type, (clock.monotonic() - started) / 1000)
      return result
    },
    finishedLate: outcome => finishLate(deps, { set, record }, outcome),
  }
}

/** Reports a wake-up or promotion that has outlived its pass. */
function finishLate(
  { terms, metrics, clock, sets, notify, log, queue }: ActDeps,
  { set, record }: Pick<Acting, 'set' | 'record'>,
  outcome: Outcome,
): void {
  // The end of the term cancelled it. This is no failure; the next leader continues.
  if (outcome.type === 'failed' && terms.current().leads.aborted) return
  const key = keyOfRef(set)
  record.lateOutcomes.note(outcome)
  record.failoverHistory.note(record.pendingStatus.note([outcome]))
  const current = sets.get(key)
  const isPresent = current?.metadata.uid === set.uid
  metrics.acted(isPresent ? set : undefined, [outcome], clock.monotonic())
  if (isPresent) notify(current, eventsOf([outcome], clock.monotonic()))
  if (outcome.type === 'failed') log.warn({ set: key, err: outcome.error }, 'a wake-up failed')
  queue.add(key, { afterMs: record.actionRetries.note(attemptsOf([outcome])) })
}
