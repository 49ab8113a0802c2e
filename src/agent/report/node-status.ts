import type { Budget, Heartbeats, NodeCheck, SlotReport } from '../../api/node-report.ts'
import type { Machine } from '../../slot/decide/machine-fit.ts'
import type { ReportContent } from './content.ts'
import type { ReportWriter } from './report.ts'

/** The content of the node's report, as its parts become known. */
export interface NodeStatus {
  checks: readonly NodeCheck[]
  /** Undefined until it is known which memory this node keeps. */
  slots: readonly SlotReport[] | undefined
  /** Run of the sentinel whose promises and statements are in `slots`. */
  run: string | undefined
  machine: Machine
  /** Null: the sentinel neither votes nor is voted on. Undefined: not known yet. */
  heartbeats: Heartbeats | null | undefined
  /** Null: the node uses no disk. Undefined: not known yet. */
  diskKey: string | null | undefined
  /** Nothing of the agents is left on this node. */
  retired: boolean
  budgets: () => { readonly memory?: Budget; readonly disk?: Budget }
  /** Gives the present content to the writer of the report. */
  publish(): void
}

export function createNodeStatus(
  about: Pick<ReportContent, 'version' | 'address' | 'fingerprint' | 'signs' | 'clones'>,
  machine: Machine,
  report: Pick<ReportWriter, 'update'>,
): NodeStatus {
  const status: NodeStatus = {
    checks: [{ name: 'node', ok: false, message: 'the agent is starting', cure: 'wait for the agent' }],
    slots: undefined,
    run: undefined,
    machine,
    heartbeats: undefined,
    diskKey: undefined,
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
        ...(status.diskKey !== undefined && { diskKey: status.diskKey }),
        ...heartbeatsOf(status),
        ...status.budgets(),
      }),
  }
  return status
}

/**
 * Names the sentinel only beside its own slots. Beside those of a sentinel in another run, it would seem to have made that
 * one's statements.
 */
const heartbeatsOf = ({ slots, run, heartbeats }: NodeStatus): Pick<ReportContent, 'heartbeats'> =>
  slots === undefined || heartbeats === undefined || heartbeats?.run !== run ? {} : { heartbeats }
