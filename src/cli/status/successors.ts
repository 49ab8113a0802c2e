import type { BackupPodSet } from '../../api/backuppodset.ts'
import { keptBy } from '../../api/kept-by.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import type { Pod } from '../../kube/resources.ts'
import { podFacts } from './pods.ts'
import type { SlotReports } from './report-index.ts'

/** A pod that could take a slot, or that would be created for it. */
export interface Follower {
  readonly how: 'Frozen' | 'Staged' | 'Warm' | 'Cold' | 'Created'
  readonly pod?: string
  readonly node?: string
}

/** The number of cold backups to name: one of them is enough to read. */
const mostCold = 1

/** Returns the followers of a slot. @param reports undefined: this user may not read them */
export type FollowersOf = (slot: SlotStatus, reports: SlotReports | undefined) => readonly Follower[]

/**
 * Returns a function that tells who could follow the primary of a slot: those with the cheapest way only. The operator decides when the
 * primary is lost, so that it may choose another one of them.
 *
 * @param pods of the set
 */
export function followersIn(set: BackupPodSet, pods: readonly Pod[]): FollowersOf {
  const inPlace = new Set(
    podFacts(pods)
      .filter(pod => pod.inPlace && pod.state !== 'Terminating')
      .map(({ kind, name }) => `${kind} ${name}`),
  )
  const of = (kind: string) => pods.filter(({ metadata }) => inPlace.has(`${kind} ${metadata.name}`))
  const hot = of('hotbackup')
  const last = lastResorts(of('coldbackup'))
  const warm = hot.map(pod => follower('Warm', pod))
  const byUid = new Map(hot.map(pod => [pod.metadata.uid, pod]))
  const byNode = Map.groupBy(hot, ({ spec }) => spec?.nodeName ?? '')
  const isMemory = keptBy(set) === 'memory'
  return (slot, reports) => {
    const ready = isMemory ? withMemory(slot, reports, byUid, byNode) : warm
    return ready.length > 0 ? ready : last
  }
}

function lastResorts(cold: readonly Pod[]): readonly Follower[] {
  const named = cold.slice(0, mostCold).map(pod => follower('Cold', pod))
  return named.length > 0 ? named : [{ how: 'Created' }]
}

const follower = (how: Follower['how'], { metadata, spec }: Pod): Follower => ({
  ...{ how, pod: metadata.name },
  ...(spec?.nodeName === undefined ? {} : { node: spec.nodeName }),
})

/** Returns the hot backups that have the memory of the slot, or are on a node that has it staged. */
function withMemory(
  { protection, usableOn = [] }: SlotStatus,
  reports: SlotReports | undefined,
  byUid: ReadonlyMap<string, Pod>,
  byNode: ReadonlyMap<string, readonly Pod[]>,
): readonly Follower[] {
  const on = (how: 'Frozen' | 'Staged', nodes: readonly string[]) =>
    nodes.flatMap(node => (byNode.get(node) ?? []).map(pod => follower(how, pod)))
  if (reports === undefined)
    return protection === 'Frozen' || protection === 'Staged' ? on(protection, usableOn) : []
  const usable = [...reports].filter(([, { usable }]) => usable !== undefined)
  const frozen = usable.flatMap(([node, { usable: how, understudyUid = '' }]) => {
    const pod = how === 'Frozen' ? byUid.get(understudyUid) : undefined
    return pod?.spec?.nodeName === node ? [follower('Frozen', pod)] : []
  })
  if (frozen.length > 0) return frozen
  return on(
    'Staged',
    usable.filter(([, { usable: how }]) => how === 'Staged').map(([node]) => node),
  )
}
