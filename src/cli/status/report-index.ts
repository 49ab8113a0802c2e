import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import { splitNumber } from '../../api/slot-key.ts'

/** The reports of one slot, by node. */
export type SlotReports = ReadonlyMap<string, SlotReport>

/** The reports of all nodes. With thousands of slots, a search for each of them would take seconds. */
export interface ReportIndex {
  /** By name of the node. */
  readonly nodes: ReadonlyMap<string, NodeReport['status']>
  /** By `namespace/name` of the Lease. */
  slot(namespace: string, name: string): SlotReports
  /** Names of the Leases of a set that any node reports on. */
  slotsOf(namespace: string, set: string): readonly string[]
}

const none: SlotReports = new Map()

export function indexOf(reports: readonly NodeReport[]): ReportIndex {
  const bySlot = new Map<string, Map<string, SlotReport>>()
  const bySet = new Map<string, Set<string>>()
  for (const { metadata, status } of reports)
    for (const report of status?.slots ?? []) {
      const key = `${report.namespace}/${report.name}`
      entryOf(bySlot, key, () => new Map<string, SlotReport>()).set(metadata.name, report)
      const set = splitNumber(report.name)?.base
      if (set !== undefined)
        entryOf(bySet, `${report.namespace}/${set}`, () => new Set<string>()).add(report.name)
    }
  return {
    nodes: new Map(reports.map(({ metadata, status }) => [metadata.name, status])),
    slot: (namespace, name) => bySlot.get(`${namespace}/${name}`) ?? none,
    slotsOf: (namespace, set) => [...(bySet.get(`${namespace}/${set}`) ?? [])],
  }
}

function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  const found = map.get(key) ?? make()
  map.set(key, found)
  return found
}
