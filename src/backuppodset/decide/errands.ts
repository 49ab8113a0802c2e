/** What a pod was made for, which is over once somebody else has done it. */
import type { PodView } from '../snapshot.ts'

/** A pod that was made as the successor of one slot takes no other, for as long as that slot needs one. */
export const mayTake = ({ stage }: PodView, slot: number): boolean =>
  stage?.successorOf === undefined || stage.successorOf === slot || stage.errandOver === true
