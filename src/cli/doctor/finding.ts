/** The findings of `doctor`. Plain data: `-o json` prints it as it is. */

export const areas = ['cluster', 'kinds', 'operator', 'agents', 'nodes', 'sets', 'moves', 'you'] as const
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

/** The most findings about objects of one kind: users may have thousands of them. */
export const mostListed = 20

/** Returns the first of them, broken ones before the others, and the number of those that are left out. */
export function listed(findings: readonly Finding[], area: Area): readonly Finding[] {
  const rank = ({ verdict }: Finding) => (verdict === 'broken' ? 0 : 1)
  const inOrder = [...findings].sort((a, b) => rank(a) - rank(b) || (a.about < b.about ? -1 : 1))
  const more = inOrder.length - mostListed
  return more <= 0
    ? inOrder
    : [...inOrder.slice(0, mostListed), about(area).note('more', `${more} further ones are left out`)]
}
