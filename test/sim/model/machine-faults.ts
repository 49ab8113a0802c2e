/** Faults of machines, of links between them, and of the API server. */
import type { Cluster, ModelNode } from './cluster.ts'
import type { Machine } from './world.ts'

/** Undoes a fault later. It may have been one that heartbeats notice. */
export const later = ({ time, master, heartbeats }: Cluster, ms: number, run: () => void): void =>
  time.after(master, ms, () => {
    run()
    heartbeats.changed()
  })

export function lose(cluster: Cluster, node: ModelNode, forMs: number): void {
  cluster.powerOff(node)
  later(cluster, forMs, () => cluster.powerOn(node))
}

export function cut(cluster: Cluster, node: ModelNode | undefined, forMs: number, apiOnly: boolean): void {
  if (node === undefined) return
  const { link, machine } = node
  const isCut = (on: boolean) => {
    link.cut = on
    if (!apiOnly) machine.partitioned = on
  }
  isCut(true)
  later(cluster, forMs, () => isCut(false))
}

export function putToSleep(cluster: Cluster, node: ModelNode | undefined, forMs: number): void {
  if (node === undefined) return
  cluster.sleep(node)
  later(cluster, forMs, () => cluster.wake(node))
}

export function cutLink(
  cluster: Cluster,
  from: Machine,
  to: Machine,
  { both, forMs }: { readonly both: boolean; readonly forMs: number },
): void {
  if (from === to) return
  to.deafTo.add(from.name)
  if (both) from.deafTo.add(to.name)
  later(cluster, forMs, () => {
    to.deafTo.delete(from.name)
    from.deafTo.delete(to.name)
  })
}

export function restartSentinel(cluster: Cluster, machine: Machine, forMs: number): void {
  const { voting } = machine
  if (!machine.up || machine.asleep !== undefined || !voting.isUp) return
  cluster.heartbeats.end(machine)
  later(cluster, forMs, () => {
    // The machine may have started again meanwhile.
    if (machine.voting === voting && !voting.isUp) cluster.heartbeats.begin(machine)
  })
}

export function apiAway(cluster: Cluster, forMs: number): void {
  const isAway = (on: boolean) => {
    cluster.isApiAway = on
    for (const each of [...cluster.nodes, ...cluster.operators]) if (each !== undefined) each.link.cut = on
  }
  isAway(true)
  later(cluster, forMs, () => isAway(false))
}
