import { nodeReports, parseReport } from '../../src/api/node-report.ts'
import { isSameSlot } from '../../src/api/slot-key.ts'
import { slotsOf } from '../../zoo/slots.ts'
import type { BenchContext } from '../bench.ts'
import { untilLarge } from '../observe/pods.ts'

/**
 * Waits until each node that is to keep the memory of the set's only primary has what was saved after this call. Before that, a move
 * would compete with the copies that follow the move before.
 */
export async function atRest({ api }: BenchContext, namespace: string, set: string): Promise<void> {
  const since = Date.now()
  await untilLarge('memory on each node that is to keep it', async () => {
    const [lease] = await slotsOf({ api, namespace, name: set })
    if (lease === undefined || lease.holders.length === 0) return false
    const { items } = await api.list(nodeReports, {})
    const reports = items.filter(({ metadata }) => lease.holders.includes(metadata.name))
    return (
      reports.length === lease.holders.length &&
      reports.every(report =>
        parseReport(report).status?.slots.some(
          slot =>
            isSameSlot(slot, lease) && slot.epoch === lease.epoch && Date.parse(slot.takenAt ?? '') > since,
        ),
      )
    )
  })
}
