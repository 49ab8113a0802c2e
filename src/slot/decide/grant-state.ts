import type { GrantHeir, GrantWord } from '../../api/grant.ts'
import type { PodRef } from './pod-ref.ts'

/** A grant that may have been used. */
export interface OutstandingGrant {
  readonly heir: GrantHeir
  /** It was used, or may have been: the heir has the slot. */
  readonly isUsed: boolean
  /** The pod of the heir, if the operator may end the grant there: no agent has told that it resumes or serves. */
  readonly untold?: PodRef
}

/** The grants of a slot, as far as this process knows. */
export interface GrantState {
  /** By node: what its agent says. */
  readonly words: ReadonlyMap<string, GrantWord>
  /** No agent has heard of this number, or of any after it. */
  readonly nextNumber: number
  readonly outstanding: OutstandingGrant | undefined
}
