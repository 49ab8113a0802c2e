import type { NodeReport } from '../../api/node-report.ts'
import type { NodeView } from '../decide/memory-view.ts'
import { awayMs } from './observe-slot.ts'
import { type Reports, staleMs, voteIn } from './reports.ts'

/** Returns what a node's report says about all slots of the node. */
export function nodeView(report: NodeReport, reports: Reports): NodeView {
  const { name } = report.metadata
  const failing = report.status?.checks.find(check => !check.ok)
  const silent = reports.silentFor(name) > staleMs
  return {
    name,
    ready: report.status?.ready === true && !silent,
    silent,
    away: (report.status?.ready !== true || silent) && reports.unableFor(name) < awayMs,
    problem: silent
      ? `its agent has been silent for more than ${staleMs / 1000} s: see the log of its pod`
      : failing && `${failing.name}: ${failing.message}${failing.cure ? `; ${failing.cure}` : ''}`,
    machine: report.status,
    signer: report.status?.signs === true ? report.status.fingerprint : undefined,
    clones: report.status?.clones === true,
    vote: voteIn(report),
    diskTrouble: report.status?.disk?.reason,
  }
}
