/** OldMemory: a pod resumes with older memory than a working node has. */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import type { ModelNode, Thawed } from '../cluster.ts'
import type { Ground } from './ground.ts'

/** A copy that a node has, or had until a newer one took its place. */
interface Copy {
  readonly genesis: string
  readonly completedAt: number
  /** The last moment in the memory. */
  readonly until: number
}

/** Copies of a slot on a node that are remembered; more are not made within `fetchMs`. */
const remembered = 30

export function oldMemory({ cluster, bounds, intervalMs, violate, health }: Ground): {
  readonly look: () => void
  readonly lookAtThaw: (thaw: Thawed) => void
} {
  const { time, nodes } = cluster
  const { fetchMs, soundMs } = bounds
  /** By directory, by slot, by what a node loses with its power. */
  const copies = new WeakMap<ModelNode['volatile'], Map<string, Map<string, Copy>>>()
  const copiesOn = ({ volatile }: ModelNode, name: string) => {
    const ofNode = copies.get(volatile) ?? new Map<string, Map<string, Copy>>()
    copies.set(volatile, ofNode)
    const found = ofNode.get(name) ?? new Map<string, Copy>()
    ofNode.set(name, found)
    return found
  }
  const note = (node: ModelNode, name: string) => {
    const known = copiesOn(node, name)
    for (const { dir, completedAt } of node.volatile.shelf.get(name) ?? []) {
      const memory = node.machine.images.get(dir)?.get('app')
      if (memory === undefined || known.has(dir)) continue
      known.set(dir, { ...memory, completedAt: completedAt - 1_000_000 })
      const [oldest] = known.size > remembered ? known.keys() : []
      if (oldest !== undefined) known.delete(oldest)
    }
  }
  /**
   * Returns the last known moment of these copies, which are in the order in which they were made. The decision could not
   * know of a copy younger than `fetchMs`. But if the node has made one copy after the other, it had others shortly before.
   */
  const knownUntil = (made: readonly Copy[], thawedAt: number): number | undefined => {
    let before: Copy | undefined
    for (const copy of made) {
      const isOld = copy.completedAt <= thawedAt - fetchMs
      const isNext = before !== undefined && copy.until - before.until <= 2 * intervalMs
      if (!isOld && (!isNext || copy.completedAt > thawedAt)) break
      before = copy
    }
    return before && Math.min(before.until, thawedAt - fetchMs)
  }
  const newestKnown = (name: string, genesis: string, thawedAt: number) =>
    nodes
      .filter(node => node.machine.up && time.now() - (health.soundSince(node) ?? time.now()) > soundMs)
      .filter(({ volatile }) => (volatile.shelf.get(name) ?? []).length > 0)
      .flatMap(node => {
        const made = [...copiesOn(node, name).values()].filter(copy => copy.genesis === genesis)
        const until = knownUntil(made, thawedAt)
        return until === undefined ? [] : [{ until, node }]
      })
      .sort((a, b) => b.until - a.until)[0]
  return {
    look() {
      for (const node of nodes) for (const name of node.volatile.shelf.keys()) note(node, name)
    },
    lookAtThaw(thaw) {
      const app = thaw.pod.containers.find(each => each.name === 'app')?.app
      if (app === undefined) return
      const name = slotName(thaw.slot)
      const newest = newestKnown(name, app.memory.genesis, thaw.at)
      if (newest !== undefined && newest.until - app.memory.until > intervalMs + fetchMs)
        violate(
          'OldMemory',
          `${name} ${thaw.epoch} ${thaw.generation}`,
          `${thaw.pod.name} goes on ${Math.round(newest.until - app.memory.until)} ms behind what ${newest.node.machine.name} has`,
        )
    },
  }
}
