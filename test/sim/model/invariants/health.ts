/** Which machines, agents and operators work, and since when. */
import { leases, resourceName } from '../../../../src/kube/resources.ts'
import { timelyMs } from '../../../../src/slot/decide/deadlines.ts'
import type { Cluster, ModelNode } from '../cluster.ts'
import type { Bounds } from './bounds.ts'

export interface Health {
  look(): void
  isSound(node: ModelNode): boolean
  /** Returns the time since which the node has been sound; undefined if it is not. */
  soundSince(node: ModelNode): number | undefined
  /** True if the node's agent receives Leases a little late, and everything else works. */
  isLate(node: ModelNode): boolean
  /** Like `isSound`, and the agent has begun, even if it was started while it was cut off. */
  isAtWork(node: ModelNode): boolean
  /** True if the operators may take the node's agent for one that writes: it does, or did until a moment ago. */
  mayBeHeard(node: ModelNode): boolean
  /** Returns for how long a node has been cut off, ms. */
  cutForMs(node: ModelNode): number
  /** An operator runs and reaches the API server. */
  operatorWorks(): boolean
  /** Returns the time since which nothing disturbs the operators; undefined if something does. */
  operatorsWorkSince(): number | undefined
}

export function createHealth({ time, nodes, operators }: Cluster, bounds: Bounds): Health {
  /** It reaches every other machine, and every other one reaches it. */
  const isConnected = ({ machine }: ModelNode) =>
    !machine.partitioned &&
    machine.deafTo.size === 0 &&
    nodes.every(other => !other.machine.deafTo.has(machine.name))
  const isSound = (node: ModelNode) => isConnected(node) && isWell(node)
  const soundSince = new Map<ModelNode, number>()
  const cutSince = new Map<ModelNode, number>()
  /** From when each agent counts, ms; see `firstWordMs`. */
  const agentsCountFrom = new Map<NonNullable<ModelNode['agent']>, number>()
  /** When each agent could last write, or the operators could last take it for one that does. */
  const heardAt = new Map<ModelNode, number>()
  let operatorsWorkSince: number | undefined
  const mayBeHeard = (node: ModelNode) =>
    time.now() - (heardAt.get(node) ?? Number.NEGATIVE_INFINITY) < timelyMs + bounds.lookMs + bounds.newsMs

  /** @param wasCut the node was cut off at the last look, so perhaps also when its agent started. */
  const noteAgent = ({ agent, link }: ModelNode, wasCut: boolean, now: number) => {
    if (agent === undefined) return
    const from = agentsCountFrom.get(agent) ?? (link.cut || wasCut ? Number.POSITIVE_INFINITY : now)
    const isBack = from === Number.POSITIVE_INFINITY && !link.cut
    agentsCountFrom.set(agent, isBack ? now + bounds.firstWordMs : from)
  }
  return {
    look() {
      const now = time.now()
      for (const node of nodes) {
        if (!isSound(node)) soundSince.delete(node)
        else if (!soundSince.has(node)) soundSince.set(node, now)
        const wasCut = cutSince.has(node)
        if (!node.link.cut) cutSince.delete(node)
        else if (!cutSince.has(node)) cutSince.set(node, now)
        noteAgent(node, wasCut, now)
      }
      if (!operators.some(each => each !== undefined) || !operators.every(isSteady))
        operatorsWorkSince = undefined
      else operatorsWorkSince ??= now
      // Late news look recent to the operators, because they count from when they see it.
      for (const node of nodes)
        if (writes(node) || (operatorsWorkSince === undefined && mayBeHeard(node))) heardAt.set(node, now)
    },
    isSound,
    soundSince: node => soundSince.get(node),
    isLate(node) {
      const { machine, link, agent } = node
      const lag = agent?.link.lagMs
      if (lag?.size !== 1 || !isConnected(node) || !machine.up || machine.kernel.paused) return false
      const ms = lag.get(resourceName(leases)) ?? -1
      return ms >= 0 && ms <= bounds.lateMs && !link.cut && agent?.party.alive === true && !agent.party.paused
    },
    isAtWork: node =>
      isSound(node) && node.agent !== undefined && time.now() >= (agentsCountFrom.get(node.agent) ?? 0),
    mayBeHeard,
    cutForMs: node => time.now() - (cutSince.get(node) ?? time.now()),
    operatorWorks: () => operators.some(each => each?.party.alive && !each.party.paused && !each.link.cut),
    operatorsWorkSince: () => operatorsWorkSince,
  }
}

const isWell = (node: ModelNode): boolean =>
  writes(node) &&
  node.machine.voting.isUp &&
  ![...(node.agent?.link.lagMs.values() ?? [])].some(lag => lag !== 0) &&
  node.agent?.link.refusals === 0

/** The node's agent reaches the API server. */
const writes = ({ machine, link, agent }: ModelNode): boolean =>
  machine.up &&
  !machine.kernel.paused &&
  !link.cut &&
  agent?.party.alive === true &&
  !agent.party.paused &&
  !agent.link.cut

const isSteady = (operator: Cluster['operators'][number]): boolean =>
  operator === undefined ||
  (!operator.party.paused &&
    !operator.link.cut &&
    operator.link.lagMs.size === 0 &&
    operator.link.refusals + operator.link.lostAnswers === 0 &&
    !operator.link.losesCreates &&
    !operator.link.refusesPods)
