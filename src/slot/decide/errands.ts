/** The errand of a pod that was made for one slot; it is over once that slot has no more need of the pod. */
import type { Candidate } from './snapshot.ts'

/** True if the pod may take this slot: a pod made for one slot takes no other while that slot needs a pod. */
export const mayTake = ({ stage }: Candidate, slot: number): boolean =>
  stage?.successorOf === undefined || stage.successorOf === slot || stage.errandOver === true
