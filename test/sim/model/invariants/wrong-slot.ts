/** WrongSlot: connections to a pod of one slot lead to the memory of another slot. */
import { labels } from '../../../../src/api/labels.ts'
import { pods } from '../../../../src/kube/resources.ts'
import { answering } from '../world.ts'
import type { Ground } from './ground.ts'

export function wrongSlot({ cluster, bounds, violate, health }: Ground): (elapsed: number) => void {
  const { time, server, nodes } = cluster
  /** Slot of each pod that ever was a primary. */
  const slotsOfPods = new Map<string, number>()
  const misled = new Map<string, number>()
  const noteSlots = () => {
    for (const { metadata } of server.list(pods)) {
      const slot = metadata.labels?.[labels.slot]
      const type = metadata.labels?.[labels.type]
      if (slot !== undefined && (type === 'primary' || type === 'retired'))
        slotsOfPods.set(metadata.uid, Number(slot))
    }
  }
  return elapsed => {
    noteSlots()
    const machines = nodes.map(({ machine }) => machine)
    const seen = new Set<string>()
    for (const node of nodes) {
      for (const pod of node.machine.pods.values()) {
        const slot = slotsOfPods.get(pod.uid)
        if (slot === undefined) continue
        const answer = answering(machines, pod.ip, time.now())
        const of = answer && cluster.slotOfGenesis.get(answer.app.memory.genesis)
        if (of === undefined || answer === undefined || of.endsWith('/-') || of === `default/web/${slot}`)
          continue
        const key = `${pod.uid} ${of}`
        seen.add(key)
        // A node that is cut off or paused cannot lead its redirects elsewhere. The node of the pod that answers knows them.
        const isKnown = nodes
          .filter(({ machine }) => machine.pods.get(answer.pod.uid) === answer.pod)
          .every(health.isAtWork)
        const ms = isKnown ? (misled.get(key) ?? 0) + elapsed : 0
        misled.set(key, ms)
        if (ms > bounds.wrongSlotMs)
          violate(
            'WrongSlot',
            key,
            `who asks ${pod.name} for slot ${slot} is answered by ${of} in ${answer.pod.name}`,
          )
      }
    }
    for (const key of [...misled.keys()]) if (!seen.has(key)) misled.delete(key)
  }
}
