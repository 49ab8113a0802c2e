/** @param slack how many times longer than in the model everything may take */
export const boundsOf = (slack: number) => ({
  /** Maximum time for which two apps may run with one memory, if everything works on both nodes, ms. */
  twoRunMs: 3_000 * slack,
  /** Maximum time for which a working machine may lead a pod's connections to another slot's memory, ms. */
  wrongSlotMs: 1_500 * slack,
  /** Time for a transfer and a report, in addition to the interval, ms. */
  fetchMs: 4_000 * slack,
  /** A node that has worked for this long can answer, ms. */
  soundMs: 12_000 * slack,
  /** Maximum time for which an app started in place of one whose memory is kept may answer on a working node, ms. */
  impostorMs: 5_000 * slack,
  /**
   * Maximum time without service of a slot that has a ready backup while everything needed works, ms, beside the
   * `unreadySeconds` of its set.
   */
  outageMs: 31_000 * slack,
  /** From the silence of a lost node to its successor's first answer, ms, beside the `nodeTimeout` of its set. */
  takeoverMs: 6_000 * slack,
  /** From the end of all faults until a primary that was stopped for lack of answers runs, ms, beside `nodeTimeout`. */
  resumeMs: 15_000 * slack,
  /** Maximum time for which a hot backup may be heir of no slot: 15 s, and two pauses if its like was replaced, ms. */
  strandedMs: 180_000 * slack,
  /** Maximum delay of Leases at an agent that the operator waits for, ms. */
  lateMs: 5_000,
  /** Time between two checks, ms. */
  lookMs: 500,
  /**
   * An agent that was started while its node was cut off begins only after its first requests have failed, ms. Until
   * then it counts as absent.
   */
  firstWordMs: 8_000 * slack,
  /** Time between an agent's last check of a Lease and its action on it, ms. */
  actMs: 300 * slack,
  /** An operator need not know of events that are more recent than this, ms. */
  newsMs: 500 * slack,
  /** From an edit to the end of the pass that has not seen it yet, ms. */
  passMs: 50 * slack,
  /** From the API server to an operator and back, ms. */
  wayMs: 10 * slack,
})

export type Bounds = ReturnType<typeof boundsOf>
