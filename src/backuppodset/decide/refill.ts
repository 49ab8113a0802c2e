import { isGated } from '../../slot/decide/snapshot.ts'
import type { Action, Tier } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import type { Placing } from './near.ts'
import { goes, remove, rewakes, type Tools } from './tools.ts'

/**
 * Plans the tiers below the primaries: hot backups, then cold ones, from the pods that the primaries have left.
 * @param placing says on which nodes new hot backups are useful, beside the hot backups that there are.
 */
export function refill(
  { set }: Snapshot,
  { converting, surplus, creating }: Tools,
  hotLeft: readonly PodView[],
  coldLeft: readonly PodView[],
  placing: Placing = () => made => made,
): readonly Tier[] {
  const { strategy, hotBackups, coldBackups } = set
  let short = Math.max(0, hotBackups - hotLeft.length)
  const toHot = converting(coldLeft, short, strategy.coldbackupToHotbackup)
  short -= toHot.length
  const hotActions: Action[] = toHot.map(pod => ({
    type: 'convert',
    pod,
    to: 'hotbackup',
    role: undefined,
    wake: isGated(pod),
  }))
  const place = placing([...hotLeft, ...toHot])
  for (; short > 0; short -= 1) hotActions.push(place(creating('hotbackup', strategy.unallocatedToHotbackup)))
  const surplusHot = surplus(hotLeft, hotLeft.length - hotBackups, strategy.hotbackupToUnallocated)
  hotActions.push(...surplusHot, ...rewakes(hotLeft.filter(pod => !goes(surplusHot, pod))))

  // A gate opens once. A cold pod whose gate is spent, or that never had one (relabelled by hand), is no cold backup
  // any more, but the best pod to convert.
  const left = coldLeft.filter(pod => !toHot.includes(pod))
  const gatedLeft = left.filter(isGated)
  const coldActions: Action[] = left.filter(pod => !isGated(pod)).map(pod => remove(pod, 'GateSpent'))
  for (let missingCold = coldBackups - gatedLeft.length; missingCold > 0; missingCold -= 1)
    coldActions.push(creating('coldbackup', strategy.unallocatedToColdbackup))
  coldActions.push(...surplus(gatedLeft, gatedLeft.length - coldBackups, strategy.coldbackupToUnallocated))
  return [
    { tier: 'hotbackups', actions: hotActions },
    { tier: 'coldbackups', actions: coldActions },
  ]
}
