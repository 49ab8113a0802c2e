/** LateTakeover: the node of a primary is lost, and its slot is not served soon, although it has voters and a backup. */
import type { Fence } from '../../../../src/api/fence.ts'
import { isApiServer, partsOf } from '../../../../src/api/fence.ts'
import { statementsNeeded } from '../../../../src/slot/decide/fence/quorum.ts'
import type { ModelNode } from '../cluster.ts'
import type { Ground } from './ground.ts'
import { hasBackup } from './long-outage.ts'
import { isWhole } from './not-saved.ts'
import type { ServedSlot } from './served-slots.ts'

export function lateTakeover(ground: Ground): (slots: readonly ServedSlot[], elapsed: number) => void {
  const { cluster, bounds, violate, health } = ground
  const { nodes, time } = cluster
  const outages = new Map<string, number>()
  const isSoundForLong = (node: ModelNode) =>
    time.now() - (health.soundSince(node) ?? time.now()) > bounds.soundMs
  const canDecide = ({ voters, next }: Fence) =>
    next === undefined &&
    voters.filter(voter => {
      const { node: name, run } = partsOf(voter)
      const node = nodes.find(({ machine }) => machine.name === name)
      return isApiServer(voter) || (node?.machine.voting.run === run && isSoundForLong(node))
    }).length >= statementsNeeded(voters.length)
  return (slots, elapsed) => {
    for (const { name, lease, node, answer, works } of slots) {
      const { fence } = lease
      const isBad =
        works &&
        answer === undefined &&
        fence?.isArmed === true &&
        isLost(node) &&
        canDecide(fence) &&
        nodes.every(({ machine }) => isWhole(machine)) &&
        // While many nodes are silent at once, the operator waits, because it may be cut off itself.
        nodes.every(each => each === node || isSoundForLong(each)) &&
        hasBackup(ground, lease)
      const ms = isBad ? (outages.get(name) ?? 0) + elapsed : 0
      outages.set(name, ms)
      if (ms > (fence?.timeoutMs ?? 0) + bounds.takeoverMs)
        violate(
          'LateTakeover',
          name,
          `slot ${lease.slot} lost its node, and has not been served for ${ms} ms`,
        )
    }
    for (const each of outages.keys()) if (!slots.some(({ name }) => name === each)) outages.delete(each)
  }
}

/** It reaches neither another machine nor the API server. */
const isLost = (node: ModelNode | undefined): boolean =>
  node !== undefined &&
  (!node.machine.up || node.machine.kernel.paused || (node.machine.partitioned && node.link.cut))
