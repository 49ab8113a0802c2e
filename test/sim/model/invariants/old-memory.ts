/** OldMemory: a pod resumes with older memory than a working node has. */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import type { Thawed } from '../cluster.ts'
import type { Machine } from '../world.ts'
import type { Ground } from './ground.ts'

export function oldMemory({ cluster, bounds, intervalMs, violate, health }: Ground): (thaw: Thawed) => void {
  const { time, nodes } = cluster
  const { fetchMs, soundMs } = bounds
  const oldestOf = (shelf: readonly { readonly dir: string }[], { images }: Machine) =>
    Math.min(...shelf.map(({ dir }) => images.get(dir)?.get('app')?.until ?? Number.POSITIVE_INFINITY))
  const newestOf = (name: string, genesis: string, thawedAt: number) =>
    nodes
      .filter(node => node.machine.up && time.now() - (health.soundSince(node) ?? time.now()) > soundMs)
      .flatMap(({ machine, volatile }) =>
        (volatile.shelf.get(name) ?? []).flatMap(({ dir, completedAt }, _, shelf) => {
          const memory = machine.images.get(dir)?.get('app')
          const at = completedAt - 1_000_000
          if (at > thawedAt) return []
          const isNew = at > thawedAt - fetchMs
          // The decision could not know of a copy younger than `fetchMs`. Older copies beside it, however, show that
          // the node already had memory: not more than one interval newer than those.
          if (memory === undefined || (isNew && shelf.length === 1)) return []
          const known = isNew ? oldestOf(shelf, machine) + intervalMs : Number.POSITIVE_INFINITY
          return [{ memory, machine, until: Math.min(memory.until, thawedAt - fetchMs, known) }]
        }),
      )
      .filter(({ memory }) => memory.genesis === genesis)
      .sort((a, b) => b.until - a.until)[0]
  return thaw => {
    const app = thaw.pod.containers.find(each => each.name === 'app')?.app
    if (app === undefined) return
    const name = slotName(thaw.slot)
    const newest = newestOf(name, app.memory.genesis, thaw.at)
    if (newest !== undefined && newest.until - app.memory.until > intervalMs + fetchMs)
      violate(
        'OldMemory',
        `${name} ${thaw.epoch} ${thaw.generation}`,
        `${thaw.pod.name} goes on ${Math.round(newest.until - app.memory.until)} ms behind what ${newest.machine.name} has`,
      )
  }
}
