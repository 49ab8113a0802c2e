/** TooManyDeleted: a working backup is deleted although there is none too many. */
import type { BackupPodSet } from '../../../../src/api/backuppodset.ts'
import { labels } from '../../../../src/api/labels.ts'
import { type Pod, pods, resourceName } from '../../../../src/kube/resources.ts'
import { servingOf } from '../../../../src/slot/observe/stage.ts'
import { heldBy } from './fates.ts'
import { type Ground, onLeases, setOf } from './ground.ts'
import { isStranded } from './stranded-stays.ts'

/** Time in which the pods of a set that resumes find their places, ms. */
const resumesMs = 10_000

export function tooManyDeleted(ground: Ground): void {
  const { cluster, violate } = ground
  const isExcused = excuses(ground)
  cluster.server.subscribe((resource, { type, object, old }) => {
    if (resource !== resourceName(pods) || type === 'DELETED') return
    const { uid, name, deletionTimestamp } = object.metadata
    if (deletionTimestamp === undefined || old?.metadata.deletionTimestamp !== undefined) return
    const set = setOf(cluster)
    const isHot = old?.metadata.labels?.[labels.type] === 'hotbackup'
    if (set === undefined || !isHot || cluster.wantedGone.has(uid) || isExcused(set, object as Pod)) return
    const left = wellHotBackups(ground, uid)
    if (isWell(object as Pod) && left < (set.spec.hotBackups ?? 0))
      violate('TooManyDeleted', uid, `${name} is deleted, and ${left} hot backups are left`)
  })
}

function excuses(ground: Ground): (set: BackupPodSet, pod: Pod) => boolean {
  const { cluster, bounds, leaseOf, health, editedAt } = ground
  const { time } = cluster
  /** When the Lease of a removed slot that named a pod was deleted, by the uid of the pod. */
  const letGoAt = new Map<string, number>()
  onLeases(ground, ({ type, lease }) => {
    if (type === 'DELETED' && lease.retainedSince !== undefined) letGoAt.set(lease.holder.uid, time.now())
  })
  return (set, pod) => {
    const { uid } = pod.metadata
    // It was called, answered too late, and was ended in favour of another one: no memory can be restored in it any
    // more.
    if (servingOf(pod).death !== undefined) return true
    // It was called to a slot for which the set has no place any more, and it could take no other one.
    if (heldBy(cluster, leaseOf, uid)?.retainedSince !== undefined) return true
    if (time.now() - (letGoAt.get(uid) ?? Number.NEGATIVE_INFINITY) < bounds.passMs) return true
    // It could be heir of no slot where it was, and on another node, as far as the operator knew.
    if (isStranded(ground, pod, health.mayBeHeard, 'SharedHeir')) return true
    // A suspended set needs none. When it resumes, pods are made for its slots beside its backups; the first of them that can takes a slot, and
    // another one is too many, whichever is further along.
    if (set.spec.suspend === true) return true
    if (set.spec.suspend === false && time.now() - editedAt() < resumesMs) return true
    // A rolling update deletes backups with an older template one by one.
    if (set.spec.updateStrategy?.type === 'RollingUpdate') return true
    // The operator decided by the spec before the last edit.
    return time.now() - editedAt() < bounds.passMs
  }
}

const isWell = ({ status }: Pod): boolean =>
  status?.conditions?.some(one => one.type === 'ContainersReady' && one.status === 'True') === true

/** Counts the other hot backups. The operator cannot know yet of pods whose termination began just now. */
const wellHotBackups = ({ cluster, bounds, fates }: Ground, uid: string): number =>
  cluster.server
    .list(pods)
    .filter(
      ({ metadata }) =>
        metadata.uid !== uid &&
        (metadata.deletionTimestamp === undefined ||
          cluster.time.now() - (fates.endsSince(metadata.uid) ?? 0) < bounds.newsMs),
    )
    .filter(pod => pod.metadata.labels?.[labels.type] === 'hotbackup' && isWell(pod)).length
