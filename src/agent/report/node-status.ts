import type { Budget, Heartbeats, NodeCheck, SlotReport } from '../../api/node-report.ts'
import type { Machine } from '../../slot/decide/machine-fit.ts'
import type { ReportContent, ReportWriter } from './report.ts'

/** The content of the node's report, as its parts become known. */
export interface NodeStatus {
  checks: readonly NodeCheck[]
  /** Undefined until it is known which memory this node keeps. */
  slots: readonly SlotReport[] | undefined
  machine: Machine
  /** Undefined: the sentinel neither votes nor is voted on. */
  heartbeats: Heartbeats | undefined
  /** Nothing of the agents is left on this node. */
  retired: boolean
  budgets: () => { readonly memory?: Budget; readonly disk?: Budget }
  /** Gives the present content to the writer of the report. */
  publish(): void
}

export function createNodeStatus(
  about: Pick<ReportContent, 'version' | 'address' | 'fingerprint' | 'signs'>,
  machine: Machine,
  report: Pick<ReportWriter, 'update'>,
): NodeStatus {
  const status: NodeStatus = {
    checks: [{ name: 'node', ok: false, message: 'the agent is starting', cure: 'wait for the agent' }],
    slots: undefined,
    machine,
    heartbeats: undefined,
    retired: false,
    budgets: () => ({}),
    publish: () =>
      report.update({
        ...about,
        ...status.machine,
        cpuFeatures: status.machine.cpuFeatures ?? [],
        checks: status.checks,
        ready: status.checks.length > 0 && status.checks.every(({ ok }) => ok),
        slots: status.slots,
        retired: status.retired,
        ...(status.heartbeats && { heartbeats: status.heartbeats }),
        ...status.budgets(),
      }),
  }
  return status
}
