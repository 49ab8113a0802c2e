import type { Random } from '../../kube/random.ts'
import type { Snapshot } from '../snapshot.ts'

/**
 * Returns a function that names new pods. The names have the form `<set>-<12 hex>`, and no pod of the snapshot has them. In a set whose
 * pods are numbered they have the form `<set>-<next number>`: if two operators make the same pod, the second gets an error.
 */
export function podNamer(s: Snapshot, random: Random): () => string {
  if (s.set.isNumbered) {
    let last = s.lastNumber ?? -1
    return () => {
      last += 1
      return `${s.set.name}-${last}`
    }
  }
  const used = new Set([...s.pods, ...s.finished, ...s.strays].map(pod => pod.name))
  return () => {
    let name: string
    do name = `${s.set.name}-${Buffer.from(random.bytes(6)).toString('hex')}`
    while (used.has(name))
    used.add(name)
    return name
  }
}
