/** Budgets: how many pods may be under way at once, of a node, a namespace, a workload, and in all. */
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { threshold } from './threshold.ts'
import type { Place, PodFacts, World } from './world.ts'

/** Why a job has to wait. */
export interface Obstacle {
  readonly reason: string
  readonly message: string
}

interface Question {
  readonly isKeptServing: boolean
  /** Uids of pods whose places do not count. */
  readonly without?: ReadonlySet<string>
}

/** All pods of a group but the one in question and these. */
interface Others {
  readonly uid: string
  readonly without: ReadonlySet<string>
}

const nobody: ReadonlySet<string> = new Set()

interface Group {
  /** Uids of the pods that are under way. */
  readonly uids: Set<string>
  /** Used for workloads: numbers of these pods that are ready, and that are not counted as unhealthy already. */
  healthy: number
  extra: number
}

/** The pods that are under way: those of admitted jobs. One pod counts once, whatever the number of its jobs. */
export class Budgets {
  readonly #world: Pick<World, 'workloads' | 'disruptionBudgets'>
  readonly #args: MigrationControllerArgs
  readonly #groups = new Map<string, Group>()

  constructor(world: Pick<World, 'workloads' | 'disruptionBudgets'>, args: MigrationControllerArgs) {
    this.#world = world
    this.#args = args
  }

  /** @param disruptionBudgets from which its removal has still to be taken. */
  add(place: Place, disruptionBudgets: readonly string[]): void {
    const { uid, namespace, node, workload } = place
    if (this.#group('all').uids.has(uid)) return
    this.#group('all').uids.add(uid)
    this.#group(`namespace/${namespace}`).uids.add(uid)
    if (node !== undefined) this.#group(`node/${node}`).uids.add(uid)
    if (workload !== undefined) {
      const group = this.#group(`workload/${workload}`)
      group.uids.add(uid)
      const facts = this.#world.workloads.get(workload)
      if (facts?.healthy.has(uid) === true) group.healthy += 1
      if (facts?.unhealthy.has(uid) !== true) group.extra += 1
    }
    for (const key of disruptionBudgets) this.#group(`budget/${key}`).uids.add(uid)
  }

  /** Pods of the workload that are under way. */
  migrating(workload: string): number {
    return this.#groups.get(`workload/${workload}`)?.uids.size ?? 0
  }

  isUnderWay(uid: string): boolean {
    return this.#group('all').uids.has(uid)
  }

  /** Returns why the pod has to wait; undefined if all budgets have a place for it. */
  obstacleTo(pod: PodFacts, { isKeptServing, without = nobody }: Question): Obstacle | undefined {
    const others = { uid: pod.uid, without }
    const { maxMigratingGlobally, maxMigratingPerNode, maxMigratingPerNamespace } = this.#args
    return (
      this.#full('GlobalBudget', 'all', others, maxMigratingGlobally, 'pods in all') ??
      this.#full(
        'NamespaceBudget',
        `namespace/${pod.namespace}`,
        others,
        maxMigratingPerNamespace,
        `pods of namespace ${pod.namespace}`,
      ) ??
      (pod.node === undefined
        ? undefined
        : this.#full(
            'NodeBudget',
            `node/${pod.node}`,
            others,
            maxMigratingPerNode,
            `pods of node ${pod.node}`,
          )) ??
      this.#ofWorkload(pod, { isKeptServing, without })
    )
  }

  #ofWorkload(pod: PodFacts, { isKeptServing, without }: Required<Question>): Obstacle | undefined {
    const { owner, uid } = pod
    const others = { uid, without }
    const key = owner.type === 'workload' ? owner.key : undefined
    const facts = key === undefined ? undefined : this.#world.workloads.get(key)
    if (key === undefined || facts === undefined)
      return isKeptServing ? undefined : this.#disruption(pod, others)
    const { maxMigratingPerWorkload, rounding } = this.#args
    const most = threshold(facts.desired, maxMigratingPerWorkload, rounding)
    const obstacle = this.#exceeds(
      ...(['WorkloadBudget', this.#others(`workload/${key}`, others), most, `pods of ${key}`] as const),
    )
    if (obstacle !== undefined || isKeptServing) return obstacle
    // A disruption budget says what the workload can spare, so the threshold is for workloads without one.
    return pod.disruptionBudgets.length > 0 ? this.#disruption(pod, others) : this.#unavailable(key, others)
  }

  /** Counts each pod once: not ready, missing, under way, and this one. */
  #unavailable(key: string, { uid, without }: Others): Obstacle | undefined {
    const facts = this.#world.workloads.get(key)
    if (facts === undefined) return undefined
    const { maxUnavailablePerWorkload, rounding } = this.#args
    const { uids, healthy, extra } = this.#group(`workload/${key}`)
    const spared = [...without].filter(each => each !== uid)
    const count = (is: (each: string) => boolean) => spared.filter(is).length
    const isCounted = uids.has(uid)
    const bad =
      facts.unhealthy.size -
      count(each => facts.unhealthy.has(each)) +
      (extra - count(each => uids.has(each) && !facts.unhealthy.has(each))) +
      (isCounted || facts.unhealthy.has(uid) ? 0 : 1)
    const leaving = healthy - count(each => uids.has(each) && facts.healthy.has(each))
    const left = facts.healthy.size - leaving - (!isCounted && facts.healthy.has(uid) ? 1 : 0)
    const unavailable = Math.max(bad, facts.desired - left)
    const most = threshold(facts.desired, maxUnavailablePerWorkload, rounding)
    return unavailable <= most
      ? undefined
      : {
          reason: 'UnavailableBudget',
          message: `waits: ${key} may miss ${most} of its ${facts.desired} pods, and would miss more`,
        }
  }

  #disruption(pod: PodFacts, others: Others): Obstacle | undefined {
    const refuse = (message: string): Obstacle => ({
      reason: 'DisruptionBudget',
      message: `waits: ${message}`,
    })
    const [first, second] = pod.disruptionBudgets
    if (first === undefined) return undefined
    if (second !== undefined)
      return refuse('two PodDisruptionBudgets select the pod, and the API server evicts no such pod')
    const budget = this.#world.disruptionBudgets.get(first)
    if (budget?.isCurrent !== true)
      return refuse(`the state of PodDisruptionBudget ${first} is not known yet`)
    if (!pod.isReady && (budget.sparesUnready || budget.currentHealthy >= budget.desiredHealthy))
      return undefined
    return this.#others(`budget/${first}`, others) + 1 <= budget.allowed
      ? undefined
      : refuse(`PodDisruptionBudget ${budget.name} allows no further disruption`)
  }

  #full(
    reason: string,
    group: string,
    others: Others,
    most: number | undefined,
    what: string,
  ): Obstacle | undefined {
    return most === undefined ? undefined : this.#exceeds(reason, this.#others(group, others), most, what)
  }

  #exceeds(reason: string, others: number, most: number, what: string): Obstacle | undefined {
    return others + 1 <= most
      ? undefined
      : { reason, message: `waits: at most ${most} ${what} may be under way` }
  }

  #others(group: string, { uid, without }: Others): number {
    const uids = this.#groups.get(group)?.uids
    if (uids === undefined) return 0
    return [...without].reduce(
      (count, each) => count - (each !== uid && uids.has(each) ? 1 : 0),
      uids.size - (uids.has(uid) ? 1 : 0),
    )
  }

  #group(name: string): Group {
    const group = this.#groups.get(name) ?? { uids: new Set(), healthy: 0, extra: 0 }
    this.#groups.set(name, group)
    return group
  }
}
