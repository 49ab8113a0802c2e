/** Suspensions of the probes of pods that are stopped for a dump or a handover. */
export interface ProbeSuspensions {
  /** Keeps probes of this pod from counting until the returned function is called. */
  readonly suspendProbes: (uid: string) => () => void
  /** Notes how the probes of a pod are suspended; undefined: it is not probed any more. */
  readonly onProber: (uid: string, suspend: (() => () => void) | undefined) => void
}

export function createProbeSuspensions(): ProbeSuspensions {
  const probers = new Map<string, () => () => void>()
  return {
    suspendProbes: uid => probers.get(uid)?.() ?? (() => undefined),
    onProber(uid, suspend) {
      if (suspend === undefined) probers.delete(uid)
      else probers.set(uid, suspend)
    },
  }
}
