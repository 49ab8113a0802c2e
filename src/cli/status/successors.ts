import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import type { Pod } from '../../kube/resources.ts'
import { keptBy } from '../checkpoint/slots.ts'
import { podFacts } from './pods.ts'

/** A pod that could take a slot, or that would be created for it. */
export interface Follower {
  readonly how: 'Frozen' | 'Staged' | 'Warm' | 'Cold' | 'Created'
  readonly pod?: string
  readonly node?: string
}

/** The reports of one slot, by node. */
export type SlotReports = ReadonlyMap<string, SlotReport>

/** The number of cold backups to name: one of them is enough to read. */
const mostCold = 1

/**
 * Returns who could follow the primary of a slot: those with the cheapest way only. The operator decides when the primary is lost,
 * so that it may choose another one of them.
 *
 * @param pods of the set
 * @param reports undefined: this user may not read them
 */
export function followersOf(
  set: BackupPodSet,
  slot: SlotStatus,
  pods: readonly Pod[],
  reports: SlotReports | undefined,
): readonly Follower[] {
  const inPlace = new Set(
    podFacts(pods)
      .filter(pod => pod.inPlace && pod.state !== 'Terminating')
      .map(({ kind, name }) => `${kind} ${name}`),
  )
  const of = (kind: string) => pods.filter(({ metadata }) => inPlace.has(`${kind} ${metadata.name}`))
  const hot = of('hotbackup')
  const follower = (how: Follower['how'], { metadata, spec }: Pod): Follower => ({
    ...{ how, pod: metadata.name },
    ...(spec?.nodeName === undefined ? {} : { node: spec.nodeName }),
  })
  const ready =
    keptBy(set) === 'memory'
      ? withMemory(slot, hot, reports).map(([how, pod]) => follower(how, pod))
      : hot.map(pod => follower('Warm', pod))
  if (ready.length > 0) return ready
  const cold = of('coldbackup').slice(0, mostCold)
  return cold.length > 0 ? cold.map(pod => follower('Cold', pod)) : [{ how: 'Created' }]
}

type Found = readonly ['Frozen' | 'Staged', Pod]

/** Returns the hot backups that have the memory of the slot, or are on a node that has it staged. */
function withMemory(
  { protection, usableOn = [] }: SlotStatus,
  hot: readonly Pod[],
  reports: SlotReports | undefined,
): readonly Found[] {
  if (reports === undefined) {
    if (protection !== 'Frozen' && protection !== 'Staged') return []
    return hot
      .filter(({ spec }) => usableOn.includes(spec?.nodeName ?? ''))
      .map((pod): Found => [protection, pod])
  }
  const found = hot.flatMap((pod): readonly Found[] => {
    const report = reports.get(pod.spec?.nodeName ?? '')
    if (report?.usable === 'Frozen' && report.understudyUid === pod.metadata.uid) return [['Frozen', pod]]
    return report?.usable === 'Staged' ? [['Staged', pod]] : []
  })
  const frozen = found.filter(([how]) => how === 'Frozen')
  return frozen.length > 0 ? frozen : found
}

/** Returns the reports on each slot by `namespace/name` of its Lease, and by node. */
export function reportsBySlot(reports: readonly NodeReport[]): ReadonlyMap<string, SlotReports> {
  const bySlot = new Map<string, Map<string, SlotReport>>()
  for (const { metadata, status } of reports)
    for (const report of status?.slots ?? []) {
      const key = `${report.namespace}/${report.name}`
      const nodes = bySlot.get(key) ?? new Map<string, SlotReport>()
      bySlot.set(key, nodes)
      nodes.set(metadata.name, report)
    }
  return bySlot
}
