/** The findings of `doctor`. Plain data: `-o json` prints it as it is. */

export const areas = ['cluster', 'kinds', 'operator', 'agents', 'nodes', 'sets', 'you'] as const
export type Area = (typeof areas)[number]

export interface Finding {
  readonly area: Area
  /** The name of the object, check or command that was examined. */
  readonly about: string
  /**
   * `broken`: has to be cured. `unproven`: never seen to work, here or anywhere. `unknown`: could not be examined,
   * mostly for lack of rights. `note`: worth knowing.
   */
  readonly verdict: 'ok' | 'broken' | 'unproven' | 'unknown' | 'note'
  readonly message: string
  readonly cure?: string
}

/** Findings about one area. */
export const about = (area: Area) => ({
  ok: (what: string, message: string): Finding => ({ area, about: what, verdict: 'ok', message }),
  broken: (what: string, message: string, cure: string): Finding => ({
    ...{ area, about: what, verdict: 'broken', message, cure },
  }),
  note: (what: string, message: string, cure?: string): Finding => ({
    ...{ area, about: what, verdict: 'note', message },
    ...(cure === undefined ? {} : { cure }),
  }),
  unproven: (what: string, message: string, cure: string): Finding => ({
    ...{ area, about: what, verdict: 'unproven', message, cure },
  }),
  unknown: (what: string, message: string): Finding => ({ area, about: what, verdict: 'unknown', message }),
})
