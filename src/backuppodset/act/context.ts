import type { ParsedSet } from '../../api/parse.ts'
import type { Api } from '../../kube/api.ts'
import type { Pod } from '../../kube/resources.ts'
import type { PodSettings } from '../pod/render.ts'
import type { Tombstones } from '../tombstones.ts'
import type { GateRequest, GateResult } from './open-gate.ts'
import type { Outcome } from './outcome.ts'
import type { Wakes } from './wakes.ts'

/** What every executor works with, for one pass over one set. */
export interface ActContext {
  readonly set: ParsedSet
  readonly api: Api
  /** The same API server through connections of its own, so that a promotion never queues behind bulk creations. */
  readonly urgentApi: Api
  readonly settings: PodSettings
  readonly tombstones: Tombstones
  readonly wakes: Wakes
  readonly openGate: (request: GateRequest) => Promise<GateResult>
  /** A pod of this pass by uid, as the cache had it. */
  readonly podOf: (uid: string) => Pod | undefined
  /** To be called with every pod that a write returned, before anything else looks at the set again. */
  readonly wrote: (pod: Pod) => void
  /** A wake-up that outlived its pass has ended. */
  readonly finishedLate: (outcome: Outcome) => void
  readonly signal: AbortSignal
}
