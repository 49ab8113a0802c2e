/** Finds peers by the reports of their nodes. */
import type { NodeReport, NodeReportStatus } from '../../api/node-report.ts'

type Report = Pick<NodeReport, 'metadata'> & {
  readonly status?: Pick<NodeReportStatus, 'fingerprint' | 'address'>
}

/**
 * Returns the node whose agent has this key and address. If two reports have the same key, one of them is false, and it
 * is unknown which: then there is no result.
 */
export function nodeBehind(
  reports: readonly Report[],
  { fingerprint, address }: { readonly fingerprint: string; readonly address: string },
): string | undefined {
  const found = reports.filter(({ status }) => status?.fingerprint === fingerprint)
  const [report] = found
  return found.length === 1 && hostOf(report?.status) === address ? report?.metadata.name : undefined
}

/** True if a report has this address. */
export const isPeerAddress = (reports: readonly Report[], address: string): boolean =>
  reports.some(({ status }) => hostOf(status) === address)

/** Returns the address at which an agent listens and from which it connects; undefined if the report has none. */
const hostOf = (status: Report['status']): string | undefined =>
  status?.address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
