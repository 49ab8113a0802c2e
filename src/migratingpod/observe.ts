import type { BackupPodSet } from '../api/backuppodset.ts'
import { isOfMigratingPod, type MigratingPod } from '../api/migrating-pod.ts'
import { isFinished, type Migration, phaseTime } from '../api/migration.ts'
import { kindLabelOf, retired } from '../api/pod-kind.ts'
import { bySet } from '../api/set-label.ts'
import { keyOf } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { epochOf } from '../slot/observe/candidate.ts'
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
  readonly migrations: Pick<Store<Migration>, 'by'>
}

export interface Observed {
  readonly view: MigratingPodView
  /** The set, if it is that of the MigratingPod and is not being deleted. */
  readonly set: BackupPodSet | undefined
}

/** Performs all reads of a pass, from the caches only. */
export function observe(object: MigratingPod, { sets, pods, migrations }: ObserveDeps): Observed {
  const key = keyOf(object)
  const found = sets.get(key)
  const set = setFactsOf(object, found)
  const isOurs = set.type === 'ours'
  return {
    set: isOurs ? found : undefined,
    view: {
      ...{ object, set },
      pods: isOurs
        ? pods
            .by(bySet, key)
            .filter(pod => controllerOf(pod)?.uid === found?.metadata.uid)
            .map(podFactsOf)
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

function podFactsOf(pod: Pod): PodFacts {
  const { name, labels = {}, annotations = {}, deletionTimestamp } = pod.metadata
  const kind = kindLabelOf(pod)
  const { failed, restarts, understudy } = stageOf(pod)
  return {
    ...{ name, labels, annotations, epoch: epochOf(pod), node: pod.spec?.nodeName },
    isPrimary: kind === 'primary',
    isLeaving: deletionTimestamp !== undefined || kind === retired,
    runs: pod.status?.phase === 'Running',
    ...(!understudy && restarts > 0 && { restarts }),
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
