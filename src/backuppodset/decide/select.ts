import type { Strategy } from '../../api/backuppodset.ts'
import type { PodKind } from '../../api/labels.ts'
import { createHeap, type HeapItem } from '../../kube/heap.ts'
import type { Random } from '../../kube/random.ts'
import type { PodView } from '../snapshot.ts'

/** Whether the chosen pods join a kind or leave it: `spread` and `annotated` choose the opposite for the two. */
export type Purpose = 'convert' | 'delete'

export interface Draws {
  readonly count: number
  readonly purpose: Purpose
  /** All live pods of the set. */
  readonly peers: readonly PodView[]
  readonly random: Random
}

/**
 * Draws `count` of the candidates. There are more candidates than that, sorted by name. A set may have ten thousand
 * pods, and nothing else runs meanwhile, not even the renewal of the leader lease: no policy takes longer than a sort.
 */
export type Policy = (candidates: readonly PodView[], draws: Draws) => PodView[]

export type Policies = Readonly<Record<Strategy, Policy>>

/** Removes and returns a random pod; the order of the others changes. */
function drawn(pods: PodView[], random: Random): PodView | undefined {
  const at = Math.floor(random.next() * pods.length)
  const last = pods.pop()
  const pod = pods[at]
  if (pod === undefined || last === undefined) return last
  pods[at] = last
  return pod
}

/** The selection policies of `spec.strategy`, by name. */
export const policies: Policies = {
  random: (candidates, { count, random }) => {
    const left = [...candidates]
    return Array.from({ length: count }, () => drawn(left, random)).filter(pod => pod !== undefined)
  },
  oldest: (candidates, { count }) => candidates.toSorted((a, b) => a.createdAt - b.createdAt).slice(0, count),
  newest: (candidates, { count }) => candidates.toSorted((a, b) => b.createdAt - a.createdAt).slice(0, count),
  spread: drawSpread,
  annotated: drawAnnotated,
}

/**
 * Draws by the preference that an external model has written on the pods: the most wanted pod is converted first, the
 * least wanted deleted first. No draw waits for the model: pods with equal or no preference are drawn by chance.
 */
function drawAnnotated(candidates: readonly PodView[], { count, purpose, random }: Draws): PodView[] {
  const sign = purpose === 'convert' ? -1 : 1
  return candidates
    .map(pod => ({ pod, cost: sign * (pod.preference ?? 0), lot: random.next() }))
    .sort((a, b) => a.cost - b.cost || a.lot - b.lot)
    .slice(0, count)
    .map(({ pod }) => pod)
}

interface NodeOf extends HeapItem {
  readonly pods: PodView[]
  /** The next pod is drawn from the node with the lowest load. */
  load: number
  /** Breaks ties between nodes of equal load. */
  readonly lot: number
}

/**
 * Converts pods on the nodes with the fewest primaries, and deletes pods on the nodes with the most pods of the kind;
 * each draw counts for the next one.
 */
function drawSpread(candidates: readonly PodView[], { count, purpose, peers, random }: Draws): PodView[] {
  const placeOf = (node: string, kind: PodKind) => `${kind} ${node}`
  const loads = new Map<string, number>()
  for (const { node, kind } of peers)
    if (node !== undefined) loads.set(placeOf(node, kind), (loads.get(placeOf(node, kind)) ?? 0) + 1)
  const sign = purpose === 'convert' ? 1 : -1
  const nodes = new Map<string, NodeOf>()
  const heap = createHeap<NodeOf>((a, b) => (a.load === b.load ? a.lot < b.lot : a.load < b.load))
  for (const pod of candidates) {
    const place =
      pod.node === undefined ? '' : placeOf(pod.node, purpose === 'convert' ? 'primary' : pod.kind)
    const known = nodes.get(place)
    if (known !== undefined) known.pods.push(pod)
    else
      nodes.set(place, { pods: [pod], load: sign * (loads.get(place) ?? 0), lot: random.next(), place: -1 })
  }
  for (const node of nodes.values()) heap.push(node)
  const unplaced = nodes.get('')
  const taken: PodView[] = []
  while (taken.length < count) {
    const node = heap.peek()
    const pod = node && drawn(node.pods, random)
    if (node === undefined || pod === undefined) break
    taken.push(pod)
    // One primary more, or one pod of the kind less.
    if (node !== unplaced) node.load += 1
    if (node.pods.length > 0) heap.moved(node)
    else heap.remove(node)
  }
  return taken
}

/**
 * Takes up to `count` pods out of `candidates`. `rank` comes before the policy, which chooses among the remaining pods
 * of the lowest rank: no policy can prefer an unready pod to a ready one.
 */
export function take(
  candidates: readonly PodView[],
  count: number,
  rank: (pod: PodView) => number,
  policy: Policy,
  context: Omit<Draws, 'count'>,
): PodView[] {
  if (count <= 0) return []
  const ranks = new Map<number, PodView[]>()
  // Sorted by name, because a cache lists pods in no fixed order and the same snapshot must give the same plan.
  for (const pod of candidates.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const its = rank(pod)
    const group = ranks.get(its)
    if (group === undefined) ranks.set(its, [pod])
    else group.push(pod)
  }
  const taken: PodView[] = []
  for (const [, group] of [...ranks].sort(([a], [b]) => a - b)) {
    const missing = count - taken.length
    if (missing <= 0) break
    taken.push(...(group.length <= missing ? group : policy(group, { ...context, count: missing })))
  }
  return taken
}

/**
 * Rank for conversions: a ready pod first, then a pod with an open gate, then a pod that waits at its gate, then all
 * others.
 */
export const readinessForConversion = (pod: PodView): number =>
  pod.ready ? 0 : pod.gate === 'open' ? 1 : pod.gate === 'waiting' ? 2 : 3

/**
 * Rank for deletions, as in Kubernetes' own sets: unscheduled pods first, then unready, then ready ones. Among equals
 * the lowest deletion cost comes first, then pods made for one slot; readiness outweighs that, because such a backup
 * may be the only working one.
 */
export const rankForDeletion = (pod: PodView): number =>
  readinessForDeletion(pod) * 2 ** 32 + (pod.deletionCost ?? 0) + (isMadeForOne(pod) ? 0 : 0.5)

/** Once the pod has become a primary, its errand is over. */
const isMadeForOne = ({ kind, stage }: PodView): boolean =>
  kind === 'hotbackup' && stage?.successorOf !== undefined

const readinessForDeletion = (pod: PodView): number =>
  pod.node === undefined ? 0 : pod.ready || (pod.kind === 'coldbackup' && pod.gate === 'waiting') ? 2 : 1
