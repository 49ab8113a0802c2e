import type { NodeReport } from '../../api/node-report.ts'

/**
 * True if the agents of all nodes have this version. Agents of the version before cannot check files with digests by page, and
 * an upgrade replaces one agent after the other. Any node may become a holder, or fetch from one.
 */
export const areAllOf = (version: string, reports: readonly Pick<NodeReport, 'status'>[]): boolean =>
  reports.every(({ status }) => status === undefined || status.version === version)
