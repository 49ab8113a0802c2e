import type { Strategy } from '../../api/backuppodset.ts'
import type { Random } from '../../kube/random.ts'
import type { PodView } from '../snapshot.ts'

/** Whether the chosen pod joins the kind or leaves it: `spread` and `oldest` mean the opposite for the two. */
export type Purpose = 'convert' | 'delete'

/** Chooses one of at least one candidates, which come sorted by name; `peers` are all live pods of the set. */
export type Policy = (
  candidates: readonly [PodView, ...PodView[]],
  context: { readonly purpose: Purpose; readonly peers: readonly PodView[]; readonly random: Random },
) => PodView

export type Policies = Readonly<Record<Strategy, Policy>>

const first = (pods: readonly [PodView, ...PodView[]], less: (a: PodView, b: PodView) => number): PodView =>
  pods.reduce((best, pod) => (less(pod, best) < 0 ? pod : best), pods[0])

const drawn = (pods: readonly [PodView, ...PodView[]], random: Random): PodView =>
  pods[Math.floor(random.next() * pods.length)] ?? pods[0]

/** The selection policies of `spec.strategy`, by name. */
export const policies: Policies = {
  random: (candidates, { random }) => drawn(candidates, random),
  oldest: candidates => first(candidates, (a, b) => a.createdAt - b.createdAt),
  newest: candidates => first(candidates, (a, b) => b.createdAt - a.createdAt),
  // Conversions go where fewest primaries are, deletions take from where most pods of the kind are.
  spread: (candidates, { purpose, peers, random }) => {
    const load = (pod: PodView) =>
      peers.filter(
        peer =>
          peer.node !== undefined &&
          peer.node === pod.node &&
          peer.kind === (purpose === 'convert' ? 'primary' : pod.kind),
      ).length
    const sign = purpose === 'convert' ? 1 : -1
    const best = Math.min(...candidates.map(pod => sign * load(pod)))
    const [head, ...rest] = candidates.filter(pod => sign * load(pod) === best)
    return head === undefined ? candidates[0] : drawn([head, ...rest], random)
  },
}

/**
 * Takes up to `count` pods out of `candidates`, one draw of the policy at a time.
 * `rank` comes before the policy: only the pods of lowest rank that are left are candidates of a draw,
 * so that no policy can prefer an unready pod to a ready one.
 */
export function take(
  candidates: readonly PodView[],
  count: number,
  rank: (pod: PodView) => number,
  policy: Policy,
  context: { purpose: Purpose; peers: readonly PodView[]; random: Random },
): PodView[] {
  // Sorted by name, because a cache lists pods in no order and the same snapshot must give the same plan.
  let left = [...candidates].sort((a, b) => (a.name < b.name ? -1 : 1))
  const taken: PodView[] = []
  while (taken.length < count) {
    const lowest = Math.min(...left.map(rank))
    const [head, ...rest] = left.filter(pod => rank(pod) === lowest)
    if (head === undefined) break
    const pod = policy([head, ...rest], context)
    taken.push(pod)
    left = left.filter(other => other !== pod)
  }
  return taken
}

/** Conversions: a pod that serves already, before one that will soon, before one still on its way. */
export const readinessForConversion = (pod: PodView): number =>
  pod.ready ? 0 : pod.gate === 'open' ? 1 : pod.gate === 'waiting' ? 2 : 3

/** Deletions: what does least comes first. Unscheduled, then unready, then ready. */
export const readinessForDeletion = (pod: PodView): number =>
  pod.node === undefined ? 0 : pod.ready || (pod.kind === 'coldbackup' && pod.gate === 'waiting') ? 2 : 1
