/** Room on nodes, by the requests of the pods: what the scheduler's filter of resources sees, with names, labels and taints of nodes. */
import { mayStartOn } from '../../slot/decide/may-run-on.ts'
import type { NodeRoom, PodFacts, World } from './world.ts'

export class Room {
  readonly #nodes: ReadonlyMap<string, NodeRoom>
  readonly #on = new Map<string, PodFacts[]>()

  constructor({ nodes, pods }: Pick<World, 'nodes' | 'pods'>) {
    this.#nodes = nodes
    for (const pod of pods.values()) {
      if (pod.priority < expendable) continue
      const node = pod.node ?? pod.nominated
      if (node !== undefined) this.add(node, pod)
    }
  }

  get nodes(): readonly NodeRoom[] {
    return [...this.#nodes.values()]
  }

  /** Pods that the node runs, or that are nominated for it. */
  on(node: string): readonly PodFacts[] {
    return this.#on.get(node) ?? []
  }

  /** The pod takes its room there from now on. */
  add(node: string, pod: PodFacts): void {
    const pods = this.#on.get(node) ?? []
    pods.push(pod)
    this.#on.set(node, pods)
  }

  /** True if the node has room for the pod beside these pods. */
  fits(pod: PodFacts, node: NodeRoom, beside = this.on(node.name)): boolean {
    if (!node.isSchedulable || !mayStartOn(pod.placement, node)) return false
    const others = beside.filter(({ uid }) => uid !== pod.uid)
    return Object.entries(pod.requests).every(
      ([name, amount]) =>
        amount === 0 ||
        others.reduce((all, { requests }) => all + (requests[name] ?? 0), amount) <=
          (node.allocatable[name] ?? 0),
    )
  }
}

/**
 * Pods below this priority are placeholders that may go at any time: the autoscaler of clusters ignores them too. Their room counts as free, and the
 * scheduler takes it.
 */
const expendable = -10

/** True of a pod that the scheduler might remove for a pod of that priority, and that is no placeholder. */
export const isAtRisk = (
  { priority, node }: { readonly priority: number; readonly node: string | undefined },
  from: number,
): boolean => node !== undefined && priority < from && priority >= expendable

/** No pod is at risk, so the scheduler may see this one. */
export const isHarmless = (
  { priority }: Pick<PodFacts, 'priority'>,
  { pods }: Pick<World, 'pods'>,
): boolean => ![...pods.values()].some(other => isAtRisk(other, priority))
