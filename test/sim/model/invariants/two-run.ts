/** TwoRun: two apps run with one memory. */
import { type BackupPodSet, backupPodSets } from '../../../../src/api/backuppodset.ts'
import { pods, resourceName } from '../../../../src/kube/resources.ts'
import type { Cluster } from '../cluster.ts'
import type { Ground } from './ground.ts'
import { running } from './running.ts'

export function twoRun({ cluster, bounds, violate, health, fates }: Ground): (elapsed: number) => void {
  const together = new Map<string, number>()
  const isOfDeletedSet = ofDeletedUnfenced(cluster)
  return elapsed => {
    const byGenesis = Map.groupBy(
      running(cluster).filter(({ container, pod }) => container !== 'proxy' && !isOfDeletedSet(pod.uid)),
      ({ container, app }) => `${container} ${app.memory.genesis}`,
    )
    for (const key of together.keys()) if ((byGenesis.get(key)?.length ?? 0) < 2) together.delete(key)
    for (const [key, apps] of byGenesis) {
      if (apps.length < 2) continue
      const isBad =
        health.operatorWorks() &&
        apps.every(
          ({ node, pod }) => health.isAtWork(node) || health.isLate(node) || fates.isGoing(node, pod),
        )
      const ms = isBad ? (together.get(key) ?? 0) + elapsed : 0
      together.set(key, ms)
      if (ms > bounds.twoRunMs)
        violate(
          'TwoRun',
          key,
          `${key} runs in ${apps.map(({ pod, node }) => `${pod.name} on ${node.machine.name}`).join(' and ')} for ${ms} ms`,
        )
    }
  }
}

/**
 * Returns whether a pod belongs to a deleted set without fencing. Its Lease is gone with the set, so no agent tells a
 * former primary from the present one, and the kubelet ends both in their own time. No Service leads to them.
 */
function ofDeletedUnfenced({ server }: Cluster): (pod: string) => boolean {
  const owners = new Map<string, string | undefined>()
  const deleted = new Set<string | undefined>()
  server.subscribe((resource, { type, object }) => {
    const { uid, ownerReferences } = object.metadata
    if (resource === resourceName(pods)) owners.set(uid, ownerReferences?.[0]?.uid)
    if (resource !== resourceName(backupPodSets) || type !== 'DELETED') return
    if ((object as BackupPodSet).spec.failover?.fencing === 'None') deleted.add(uid)
  })
  return pod => deleted.has(owners.get(pod))
}
