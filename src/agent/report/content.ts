import type { Heartbeats, NodeReportStatus, SlotReport } from '../../api/node-report.ts'

/** Content of a report, without the time of its writing. */
export interface ReportContent
  extends Omit<NodeReportStatus, 'updatedAt' | 'slots' | 'slotsKnown' | 'heartbeats' | 'diskKey'> {
  /** Null: the sentinel does not listen. Undefined: not known yet, and what the earlier agent's report says stays. */
  readonly heartbeats?: Heartbeats | null
  /** Null: the node uses no disk. Undefined: not known yet, and what the earlier agent's report says stays. */
  readonly diskKey?: string | null
  /** Undefined: it is not yet known which memory this node keeps, and the slots of the earlier agent's report stay. */
  readonly slots: readonly SlotReport[] | undefined
}
