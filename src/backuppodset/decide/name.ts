import type { Random } from '../../kube/random.ts'
import type { Snapshot } from '../snapshot.ts'

/** Draws names of the form `<set>-<12 hex>` that no pod of the snapshot has. */
export function podNamer(s: Snapshot, random: Random): () => string {
  const used = new Set([...s.pods, ...s.finished, ...s.strays].map(pod => pod.name))
  return () => {
    let name: string
    do name = `${s.set.name}-${Buffer.from(random.bytes(6)).toString('hex')}`
    while (used.has(name))
    used.add(name)
    return name
  }
}
