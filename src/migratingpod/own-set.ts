/** The BackupPodSet that the operator keeps for a MigratingPod. */
import { createHash } from 'node:crypto'
import { type BackupPodSet, type BackupPodSetSpec, backupPodSets } from '../api/backuppodset.ts'
import {
  type MigratingPod,
  type MigratingPodSpec,
  migratingPodLabel,
  migratingPods,
  templateKeysAnnotation,
  writtenSpecAnnotation,
} from '../api/migrating-pod.ts'
import { ownerReference } from '../kube/owner.ts'
import { apiVersionOf } from '../kube/resources.ts'
import { type Carried, withCarried } from './carried.ts'

/** Returns the spec of the set: one primary and no backups, so that one pod runs where nothing moves. */
export function setSpecOf(
  { checkpoint = {}, clonePod, failover, service, suspend = false, template }: MigratingPodSpec,
  carried: Carried,
): BackupPodSetSpec {
  const { schedulerName } = template.spec ?? {}
  return {
    ...{ replicas: 1, hotBackups: 0, coldBackups: 0, suspend, checkpoint },
    ...(clonePod !== undefined && { cloneFrom: { pod: clonePod } }),
    ...(schedulerName !== undefined && { schedulerName }),
    ...(failover && { failover }),
    ...(service && { service }),
    template: withCarried(template, carried),
  }
}

/** Characters of `templateKeysAnnotation`. Beyond that, what the template had before is forgotten. */
const mostKeyCharacters = 16_384

/** Returns the keys of labels and annotations that the template of the MigratingPod has or had. */
export function templateKeys(
  { spec: { template } }: Pick<MigratingPod, 'spec'>,
  set: BackupPodSet | undefined,
): ReadonlySet<string> {
  const { labels = {}, annotations = {} } = template.metadata ?? {}
  const now = [...Object.keys(labels), ...Object.keys(annotations)]
  const before = set?.metadata.annotations?.[templateKeysAnnotation]?.split(' ') ?? []
  const all = [...new Set([...before, ...now])].filter(key => key !== '').sort()
  return new Set(all.join(' ').length > mostKeyCharacters ? now.sort() : all)
}

const hashOf = (spec: BackupPodSetSpec): string =>
  createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16)

/** Returns the set to create. */
export const newSet = ({ metadata }: MigratingPod, spec: BackupPodSetSpec, keys: ReadonlySet<string>) => ({
  apiVersion: apiVersionOf(backupPodSets),
  kind: backupPodSets.kind,
  metadata: {
    name: metadata.name,
    namespace: metadata.namespace,
    labels: { [migratingPodLabel]: metadata.name },
    annotations: { [writtenSpecAnnotation]: hashOf(spec), [templateKeysAnnotation]: [...keys].join(' ') },
    ownerReferences: [ownerReference(migratingPods, metadata)],
  },
  spec,
})

/** Returns the set with this spec, to replace it; undefined if it has it. */
export function updatedSet(
  set: BackupPodSet,
  spec: BackupPodSetSpec,
  keys: ReadonlySet<string>,
): BackupPodSet | undefined {
  const marks = { [writtenSpecAnnotation]: hashOf(spec), [templateKeysAnnotation]: [...keys].join(' ') }
  const { labels, annotations, ...metadata } = set.metadata
  const marked = isWithin(marks, annotations) && labels?.[migratingPodLabel] === metadata.name
  // The hash notices fields that were removed, and the comparison finds changes by others.
  if (marked && isWithin(spec, set.spec)) return undefined
  return {
    ...set,
    ...{ apiVersion: apiVersionOf(backupPodSets), kind: backupPodSets.kind },
    metadata: {
      ...metadata,
      labels: { ...labels, [migratingPodLabel]: metadata.name },
      annotations: { ...annotations, ...marks },
    },
    spec,
  }
}

/** True if `all` has everything that `part` has; the API server adds defaults. */
function isWithin(part: unknown, all: unknown): boolean {
  if (Object.is(part, all)) return true
  if (typeof part !== 'object' || part === null || typeof all !== 'object' || all === null) return false
  if (Array.isArray(part))
    return Array.isArray(all) && part.length === all.length && part.every((item, i) => isWithin(item, all[i]))
  const entries = all as Readonly<Record<string, unknown>>
  return Object.entries(part).every(([key, value]) => isWithin(value, entries[key]))
}
