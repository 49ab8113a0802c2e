import type { BackupPodSet } from '../api/backuppodset.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { bySet } from '../api/set-label.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { keyOf } from '../kube/object.ts'
import { lowPriority, type Queue } from '../kube/queue.ts'
import type { Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import type { TrackedOptions } from '../kube/tracked.ts'
import type { Terms } from '../slot/act/term.ts'
import { type CheckLimit, createGateChecks, type GateChecks } from '../slot/gate/gate-checks.ts'
import type { reach } from '../slot/gate/reach.ts'
import type { WakeKeys } from '../slot/gate/token.ts'
import type { Pulled, PulledOfSet } from '../slot/http-state/pulled.ts'
import { createHandoverTimes, type HandoverTimes } from '../slot/observe/handover-times.ts'
import { createSince, type Since } from '../slot/observe/since.ts'
import type { WriteBehind } from '../state-store/write-behind.ts'
import { type ActionRetries, createActionRetries } from './action-retries.ts'
import { createFailoverHistory, type FailoverHistory } from './failover-history.ts'
import { createSpec, type Spec } from './in-force.ts'
import { createLateOutcomes, type LateOutcomes } from './late-outcomes.ts'
import { createLostPrimaries, type LostPrimaries } from './lost-primaries.ts'
import { type ClaimReader, createClaimReader } from './memory/claim-reader.ts'
import { createPendingStatus, type PendingStatus } from './pending-status.ts'
import { createReporter, type Reporter } from './report.ts'
import { createStrandings, type Strandings } from './strandings.ts'
import { createTerminatingNamespace, type TerminatingNamespace } from './terminating-namespace.ts'
import { trackedFor } from './tracked-for.ts'

/** Everything that this process remembers of one set from pass to pass. It ends with the set; see `Records`. */
export interface SetRecord {
  readonly spec: Spec
  readonly lostPrimaries: LostPrimaries
  readonly pendingStatus: PendingStatus
  readonly lateOutcomes: LateOutcomes
  readonly failoverHistory: FailoverHistory
  readonly actionRetries: ActionRetries
  readonly reporter: Reporter
  readonly namespace: TerminatingNamespace
  readonly gates: GateChecks
  readonly claims: ClaimReader
  readonly handoverTimes: HandoverTimes
  readonly strandings: Strandings
  readonly pulled: PulledOfSet
  /** Conditions of the memory of its slots, of its pods, and of the caches that it needs. */
  readonly since: { readonly memory: Since; readonly pods: Since; readonly caches: Since }
}

export interface SetRecordDeps {
  readonly api: Api
  readonly urgentApi: Api
  readonly consistency: TrackedOptions['consistency']
  readonly pods: Pick<Store<Pod>, 'by'>
  readonly isDeleted: (podUid: string) => boolean
  readonly wakeKeys: WakeKeys
  readonly reach: typeof reach
  readonly checkLimit: CheckLimit
  readonly stateStore: WriteBehind
  readonly pulled: Pulled
  readonly terms: Terms
  readonly queue: Pick<Queue, 'add'>
  readonly clock: Clock
}

export function createSetRecord(deps: SetRecordDeps, set: BackupPodSet, life: AbortSignal): SetRecord {
  const { api, clock, terms, pods } = deps
  const { uid, namespace = '' } = set.metadata
  const key = keyOf(set)
  const changed: Queue['add'] = (...added) => {
    if (!life.aborted) deps.queue.add(...added)
  }
  return {
    spec: createSpec(),
    lostPrimaries: createLostPrimaries({ key, uid }, clock, deps.isDeleted),
    pendingStatus: createPendingStatus(clock),
    lateOutcomes: createLateOutcomes(),
    failoverHistory: createFailoverHistory(uid, {
      ...{ store: deps.stateStore, clock, terms, life },
      changed: () => changed(key),
    }),
    actionRetries: createActionRetries(clock),
    reporter: createReporter(trackedFor(deps.consistency, key, api), clock),
    namespace: createTerminatingNamespace(deps.urgentApi, namespace),
    gates: createGateChecks({
      ...{ setUid: uid, clock, terms, life, wakeKeys: deps.wakeKeys },
      ...{ reach: deps.reach, limit: deps.checkLimit },
      changed: afterMs => changed(key, { afterMs, priority: lowPriority }),
    }),
    claims: createClaimReader({
      ...{ api, clock },
      primaries: () => pods.by(bySet, key).filter(isPrimary),
      changed: () => changed(key),
    }),
    handoverTimes: createHandoverTimes(),
    strandings: createStrandings(clock),
    pulled: deps.pulled.ofSet(uid, life),
    since: { memory: createSince(clock), pods: createSince(clock), caches: createSince(clock) },
  }
}

const isPrimary = (pod: Pod): boolean =>
  kindLabelOf(pod) === 'primary' && pod.metadata.deletionTimestamp === undefined
