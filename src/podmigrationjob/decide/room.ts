/**
 * Room on nodes, by the requests of the pods: what the scheduler's filter of resources sees, with names, labels and taints of nodes. One ledger
 * for all replacements of a pass: what one of them takes, no other one counts on.
 */
import { isSelected } from '../../kube/label-selector.ts'
import { mayStartOn } from '../../slot/decide/may-run-on.ts'
import type { Amounts, NodeRoom, PodFacts, World } from './world.ts'

/**
 * Pods below this priority are placeholders that may go at any time: the autoscaler of clusters ignores them too. Their room counts as free, and the
 * scheduler takes it.
 */
const expendable = -10

export class Room {
  readonly nodes: ReadonlyMap<string, NodeRoom>
  readonly #free = new Map<string, Record<string, number>>()
  readonly #on = new Map<string, PodFacts[]>()
  /** Nodes for which a replacement waits; true: until others have left the node. */
  readonly #claimed = new Map<string, boolean>()
  /** Pods for which no other node has room: room only becomes less in a pass. */
  readonly #nowhere = new Set<string>()
  #lowest = Number.POSITIVE_INFINITY

  /** @param waiting uids of the replacements that are to take their room. */
  constructor({ nodes, pods }: Pick<World, 'nodes' | 'pods'>, waiting: ReadonlySet<string> = new Set()) {
    this.nodes = nodes
    for (const { name, allocatable } of nodes.values()) this.#free.set(name, { ...allocatable })
    for (const pod of pods.values()) {
      if (pod.priority < expendable || waiting.has(pod.uid)) continue
      const node = pod.node ?? pod.nominated
      if (node !== undefined) this.#add(node, pod)
      if (pod.node !== undefined) this.#lowest = Math.min(this.#lowest, pod.priority)
    }
  }

  /** True if the scheduler would remove no pod for this one, whatever it finds. */
  isHarmless({ priority, preempts }: Pick<PodFacts, 'priority' | 'preempts'>): boolean {
    return !preempts || this.#lowest >= priority
  }

  /** Pods that have this node. */
  on(node: string): readonly PodFacts[] {
    return (this.#on.get(node) ?? []).filter(pod => pod.node === node)
  }

  /** A replacement waits for the node. */
  isClaimed(node: string): boolean {
    return this.#claimed.has(node)
  }

  /** True if the node has room for the pod when these pods have left it. */
  fits(pod: PodFacts, node: NodeRoom, without: readonly PodFacts[] = []): boolean {
    return (
      this.#claimed.get(node.name) !== true &&
      node.isSchedulable &&
      hasAll(this.spare(pod, node.name, without)) &&
      mayStartOn(pod.placement, node) &&
      !(this.#on.get(node.name) ?? []).some(other => isApart(pod, other))
    )
  }

  /** Returns the rest of the resources that the pod needs; less than nothing where it does not fit. */
  spare(pod: PodFacts, node: string, without: readonly PodFacts[]): Amounts {
    const free = this.#free.get(node) ?? {}
    const spare: Record<string, number> = {}
    for (const [name, amount] of Object.entries(pod.requests))
      if (amount > 0)
        spare[name] = without.reduce(
          (sum, { requests }) => sum + (requests[name] ?? 0),
          (free[name] ?? 0) - amount,
        )
    return spare
  }

  /** Returns a node with room for the pod, these ones first, and takes the room. */
  take(pod: PodFacts, preferred: readonly (string | undefined)[]): NodeRoom | undefined {
    const first = preferred.flatMap(name => this.nodes.get(name ?? '') ?? [])
    const node = first.find(each => this.fits(pod, each)) ?? this.#nodeFor(pod)
    if (node === undefined) return undefined
    this.#add(node.name, pod)
    this.#claimed.set(node.name, this.#claimed.get(node.name) ?? false)
    return node
  }

  /** No other replacement counts on this node until others have left it. */
  reserve(node: string): void {
    this.#claimed.set(node, true)
  }

  /** Takes room for each of the pods on another node than theirs; false: it is not there for all, and none is taken. */
  takeElsewhere(pods: readonly PodFacts[]): boolean {
    const taken: (readonly [string, PodFacts])[] = []
    for (const pod of pods) {
      const node = this.#nowhere.has(pod.uid) ? undefined : this.#nodeFor(pod, pod.node)
      if (node === undefined) {
        if (taken.length === 0) this.#nowhere.add(pod.uid)
        for (const [name, each] of taken) this.#remove(name, each)
        return false
      }
      this.#add(node.name, pod)
      taken.push([node.name, pod])
    }
    return true
  }

  #nodeFor(pod: PodFacts, except?: string): NodeRoom | undefined {
    for (const node of this.nodes.values()) if (node.name !== except && this.fits(pod, node)) return node
    return undefined
  }

  #add(node: string, pod: PodFacts): void {
    const pods = this.#on.get(node) ?? []
    pods.push(pod)
    this.#on.set(node, pods)
    this.#change(node, pod, -1)
  }

  #remove(node: string, pod: PodFacts): void {
    const pods = this.#on.get(node) ?? []
    pods.splice(pods.lastIndexOf(pod), 1)
    this.#change(node, pod, 1)
  }

  #change(node: string, { requests }: PodFacts, sign: number): void {
    const free = this.#free.get(node)
    if (free === undefined) return
    for (const [name, amount] of Object.entries(requests)) free[name] = (free[name] ?? 0) + sign * amount
  }
}

export const hasAll = (spare: Amounts): boolean => Object.values(spare).every(amount => amount >= 0)

/** The template of the pod keeps it away from nodes with such a pod. */
const isApart = ({ namespace, apart }: PodFacts, other: PodFacts): boolean =>
  apart.length > 0 &&
  other.namespace === namespace &&
  apart.some(selector => isSelected(selector, other.labels))
