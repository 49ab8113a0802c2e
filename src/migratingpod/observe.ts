import type { BackupPodSet } from '../api/backuppodset.ts'
import { isOfMigratingPod, type MigratingPod } from '../api/migrating-pod.ts'
import { isFinished, type Migration, phaseTime } from '../api/migration.ts'
import { kindLabelOf, retired } from '../api/pod-kind.ts'
import { bySet } from '../api/set-label.ts'
import { restartsOf } from '../api/slot-lease.ts'
import { keyOf } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { epochOf } from '../slot/observe/candidate.ts'
import { type SlotLeaseObject, slotLeasesOf } from '../slot/observe/slot-leases.ts'
import { stageOf } from '../slot/observe/stage.ts'
import type { MigratingPodView, MigrationFacts, PodFacts, SetFacts } from './view.ts'

/** Index of Migrations by the set of their pod, from the moment at which the operator has found it. */
export const byMovingSet = 'movingSet'

export const movingSetIndex = {
  [byMovingSet]: ({ metadata: { namespace }, status }: Migration): readonly string[] =>
    status?.source === undefined ? [] : [`${namespace}/${status.source.set}`],
}

export interface ObserveDeps {
  readonly sets: Pick<Store<BackupPodSet>, 'get'>
  readonly pods: Pick<Store<Pod>, 'by'>
  readonly leases: Pick<Store<Lease>, 'by'>
  readonly migrations: Pick<Store<Migration>, 'by'>
}

export interface Observed {
  readonly view: MigratingPodView
  /** The set, if it is that of the MigratingPod and is not being deleted. */
  readonly set: BackupPodSet | undefined
}

/** Performs all reads of a pass, from the caches only. */
export function observe(object: MigratingPod, { sets, pods, leases, migrations }: ObserveDeps): Observed {
  const key = keyOf(object)
  const found = sets.get(key)
  const set = setFactsOf(object, found)
  const isOurs = set.type === 'ours'
  const slots = found && isOurs ? slotLeasesOf(leases, { ...nameOf(found), uid: found.metadata.uid }) : []
  return {
    set: isOurs ? found : undefined,
    view: {
      ...{ object, set },
      pods: isOurs
        ? pods
            .by(bySet, key)
            .filter(pod => controllerOf(pod)?.uid === found?.metadata.uid)
            .map(pod => podFactsOf(pod, restartsIn(slots, pod)))
        : [],
      migrations: isOurs ? migrations.by(byMovingSet, key).flatMap(migrationFactsOf) : [],
    },
  }
}

function setFactsOf({ metadata: { uid } }: MigratingPod, set: BackupPodSet | undefined): SetFacts {
  if (set === undefined) return { type: 'absent' }
  const owner = controllerOf(set)
  if (owner?.uid !== uid) {
    // That of a MigratingPod of this name which was deleted: the garbage collector deletes it.
    if (isOfMigratingPod(set) && owner?.name === set.metadata.name) return { type: 'ending' }
    return { type: 'taken', owner: owner === undefined ? undefined : `${owner.kind} ${owner.name}` }
  }
  if (set.metadata.deletionTimestamp !== undefined) return { type: 'ending' }
  return { type: 'ours', generation: set.metadata.generation ?? 0, status: set.status }
}

const nameOf = ({ metadata: { namespace = '', name } }: BackupPodSet) => ({ namespace, name })

/**
 * Returns how often the app had been started in this pod before the app that runs there now, as its slot says; undefined: another pod
 * has the slot. The restart counter of the pod would also count what the kubelet starts in a pod that was left.
 */
const restartsIn = (slots: readonly SlotLeaseObject[], { metadata: { uid } }: Pod): number | undefined =>
  slots.filter(({ lease }) => lease.holder.uid === uid).map(({ object }) => restartsOf(object))[0]

function podFactsOf(pod: Pod, begun: number | undefined): PodFacts {
  const { name, labels = {}, annotations = {}, deletionTimestamp } = pod.metadata
  const kind = kindLabelOf(pod)
  const { failed, understudy } = stageOf(pod)
  return {
    ...{ name, labels, annotations, epoch: epochOf(pod), node: pod.spec?.nodeName },
    isPrimary: kind === 'primary',
    isLeaving: deletionTimestamp !== undefined || kind === retired,
    runs: pod.status?.phase === 'Running',
    ...(!understudy && begun !== undefined && { restarts: begun }),
    ...(failed !== undefined && { failed }),
  }
}

function migrationFactsOf(migration: Migration): readonly MigrationFacts[] {
  const { metadata, spec, status } = migration
  if (metadata.deletionTimestamp !== undefined || status?.phase === undefined) return []
  const endedAt = isFinished(migration) ? phaseTime(status, status.phase) : undefined
  return [
    {
      ...{ name: metadata.name, phase: status.phase, from: spec.source.name, to: status.target?.name },
      ...{ endedAt, downtimeMs: status.downtimeMilliseconds },
    },
  ]
}
