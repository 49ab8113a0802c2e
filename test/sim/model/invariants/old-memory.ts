/** OldMemory: a pod resumes with older memory than a working node has. */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import type { Thawed } from '../cluster.ts'
import type { Ground } from './ground.ts'

export function oldMemory({ cluster, bounds, intervalMs, violate, health }: Ground): (thaw: Thawed) => void {
  const { time, nodes } = cluster
  const { fetchMs, soundMs } = bounds
  const newestOf = (name: string, genesis: string, thawedAt: number) =>
    nodes
      .filter(node => node.machine.up && time.now() - (health.soundSince(node) ?? time.now()) > soundMs)
      .flatMap(({ machine, volatile }) =>
        (volatile.shelf.get(name) ?? []).flatMap(({ dir, completedAt }, _, { length }) => {
          const memory = machine.images.get(dir)?.get('app')
          const at = completedAt - 1_000_000
          if (at > thawedAt) return []
          const isNew = at > thawedAt - fetchMs
          // The decision could not know of a copy younger than `fetchMs`. Older copies beside it, however, show that
          // the node already had memory.
          if (memory === undefined || (isNew && length === 1)) return []
          return [{ memory, machine, until: Math.min(memory.until, thawedAt - fetchMs) }]
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
