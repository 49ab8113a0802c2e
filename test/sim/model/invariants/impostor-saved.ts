/** ImpostorSaved: generations of one life come from two apps. */
import type { Ground } from './ground.ts'

/** The first app of which each slot and container has a generation. */
export type SavedGenesis = ReadonlyMap<string, string>

export function impostorSaved({ cluster, violate }: Ground): {
  readonly look: () => void
  readonly saved: SavedGenesis
} {
  const saved = new Map<string, string>()
  const note = (name: string, pod: string, container: string, genesis: string) => {
    const key = `${name} ${container}`
    const first = saved.get(key)
    if (first === undefined) saved.set(key, genesis)
    else if (first !== genesis)
      violate('ImpostorSaved', key, `${name} has memory of ${genesis} beside ${first}'s, saved by ${pod}`)
  }
  const look = () => {
    for (const { machine, volatile } of cluster.nodes) {
      if (!machine.up) continue
      for (const [name, list] of volatile.shelf)
        for (const { dir, manifest } of list)
          for (const [container, { genesis }] of machine.images.get(dir) ?? [])
            note(name, manifest.source.pod, container, genesis)
    }
  }
  return { look, saved }
}
