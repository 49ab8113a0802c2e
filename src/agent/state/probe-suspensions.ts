/** Suspensions of the probes of pods that are stopped: for a dump, for a handover, or because too few voters answer. */
export interface ProbeSuspensions {
  /**
   * Keeps probes of this pod from counting until the returned function is called, also if they begin only later.
   */
  readonly suspendProbes: (uid: string) => () => void
  /** Notes how the probes of a pod are suspended; undefined: it is not probed any more. */
  readonly onProber: (uid: string, suspend: (() => () => void) | undefined) => void
}

interface Suspension {
  readonly uid: string
  resume: (() => void) | undefined
}

export function createProbeSuspensions(): ProbeSuspensions {
  const probers = new Map<string, () => () => void>()
  const suspensions = new Set<Suspension>()
  return {
    suspendProbes(uid) {
      const suspension: Suspension = { uid, resume: probers.get(uid)?.() }
      suspensions.add(suspension)
      return () => {
        if (suspensions.delete(suspension)) suspension.resume?.()
      }
    },
    onProber(uid, suspend) {
      if (suspend === undefined) probers.delete(uid)
      else probers.set(uid, suspend)
      for (const each of suspensions) if (each.uid === uid) each.resume = suspend?.()
    },
  }
}
