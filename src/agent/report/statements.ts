import type { SlotReport } from '../../api/node-report.ts'

/** Returns the parts of a report that are promises and statements, or that say that a primary stands for its successor. */
export const statementsOf = (content: { readonly slots: readonly SlotReport[] | undefined } | undefined) =>
  content?.slots?.flatMap(
    ({ name, namespace, acknowledged, fenced, ended, silentTerm, grant, final, ...slot }) => {
      const { standsForHandover, suspectTerm } = slot
      const said = { acknowledged, fenced, ended, silentTerm, suspectTerm, grant, final, standsForHandover }
      return Object.values(said).every(each => each === undefined) ? [] : [{ namespace, name, ...said }]
    },
  ) ?? []
