/** Whom reports make a peer. */
import type { NodeReport } from '../../api/node-report.ts'

type Report = Pick<NodeReport, 'metadata' | 'status'>

/**
 * The node behind a key that connects from this address. Two reports with one key: one of them lies, and nobody can say
 * which.
 */
export function nodeBehind(
  reports: readonly Report[],
  { fingerprint, address }: { readonly fingerprint: string; readonly address: string },
): string | undefined {
  const found = reports.filter(({ status }) => status?.fingerprint === fingerprint)
  const [report] = found
  return found.length === 1 && hostOf(report?.status) === address ? report?.metadata.name : undefined
}

/** Whether some agent has this address. */
export const isPeerAddress = (reports: readonly Report[], address: string): boolean =>
  reports.some(({ status }) => hostOf(status) === address)

/** The address at which an agent listens and from which it connects; undefined: it tells none. */
const hostOf = (status: Report['status']): string | undefined =>
  status?.address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
