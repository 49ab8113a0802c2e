/** Finds peers by the reports of their nodes. */
import { hostOf, type NodeReport, type NodeReportStatus } from '../../api/node-report.ts'

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
  return found.length === 1 && addressOf(report) === address ? report?.metadata.name : undefined
}

/** True if a report has this address. */
export const isPeerAddress = (reports: readonly Report[], address: string): boolean =>
  reports.some(report => addressOf(report) === address)

/** Returns the address at which an agent listens and from which it connects; undefined if there is no report of it. */
const addressOf = (report: Report | undefined): string | undefined => report?.status && hostOf(report.status)
