/** The nodes on which a new hot backup can be the heir of slots that have none, or else of those that share one. */
import { fitsMemory } from '../../slot/decide/kinds.ts'
import type { MemoryView } from '../../slot/decide/memory-view.ts'
import { sharingSlots, type Uncovered, uncoveredSlots } from '../../slot/decide/uncovered.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'

type Create = Extract<Action, { type: 'create' }>

/** Returns, for the hot backups that there are, a function that adds the preferred nodes to each new one. */
export type Placing = (hot: readonly PodView[]) => (made: Create) => Create

/**
 * The scheduler knows the nodes with primaries, and not which slot has no heir. Right after a takeover it still counts
 * the former primary, so the new primary's node seems as good as any other. Pods that are made together are for different
 * slots, as far as one pod cannot cover them.
 *
 * @param primaries the node of the primary of each slot, after this pass.
 */
export const placingFor =
  (s: Snapshot, memory: MemoryView, primaries: ReadonlyMap<number, string>): Placing =>
  hot => {
    const occupied = nodesOfPrimaries(s, primaries)
    const heirs = hot.filter(({ stage }) => stage?.failed === undefined)
    const avoid = avoided(s, occupied)
    const uncovered = uncoveredSlots(memory, primaries, heirs, avoid)
    let open = uncovered.length > 0 ? uncovered : sharingSlots(memory, primaries, heirs, avoid)
    return made => {
      const restoreHash = made.revision?.restoreHash ?? s.restoreHash
      const fit = open.filter(slot => fitsMemory(restoreHash, slot.restoreHash))
      const nodes = ranked(fit, occupied, hot)
      const [best] = nodes
      if (best === undefined) return made
      open = open.filter(slot => !fit.includes(slot) || !slot.nodes.includes(best))
      return { ...made, near: { nodes, besidePrimary: occupied.has(best) } }
    }
  }

export const nodesOfPrimaries = (
  { pods }: Pick<Snapshot, 'pods'>,
  primaries: ReadonlyMap<number, string>,
): ReadonlySet<string> =>
  new Set([
    ...primaries.values(),
    ...pods.flatMap(({ kind, node }) => (kind === 'primary' && node !== undefined ? [node] : [])),
  ])

/** The nodes that the set's anti-affinity forbids to backups. */
export const avoided = ({ set }: Snapshot, occupied: ReadonlySet<string>): ReadonlySet<string> =>
  set.antiAffinity === 'Required' ? occupied : new Set()

/**
 * Returns the nodes, best first: for the most slots, then with the memory of most of them, without a primary, and with
 * the fewest hot backups.
 */
function ranked(
  slots: readonly Uncovered[],
  occupied: ReadonlySet<string>,
  hot: readonly PodView[],
): readonly string[] {
  const count = (test: (slot: Uncovered) => boolean) => slots.filter(test).length
  return [...new Set(slots.flatMap(({ nodes }) => nodes))]
    .map(name => ({
      name,
      rank: [
        -count(({ nodes }) => nodes.includes(name)),
        -count(({ nodes, keptOn }) => nodes.includes(name) && keptOn.has(name)),
        Number(occupied.has(name)),
        hot.filter(({ node }) => node === name).length,
      ],
    }))
    .sort((a, b) => firstDifference(a.rank, b.rank) || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name)
}

const firstDifference = (a: readonly number[], b: readonly number[]): number =>
  a.map((value, i) => value - (b[i] ?? 0)).find(difference => difference !== 0) ?? 0
