import type { V1Pod, V1PodSpec } from '@kubernetes/client-node'
import { backupPodSets } from '../../api/backuppodset.ts'
import { annotations, labels, type PodKind } from '../../api/labels.ts'
import type { ParsedMemory } from '../../api/memory.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { holdInitContainer } from '../../api/stage.ts'
import type { Wire } from '../../kube/object.ts'
import { apiVersionOf } from '../../kube/resources.ts'
import type { Action } from '../plan.ts'
import { deriveToken, tokenDigest } from '../wake/token.ts'
import { withAntiAffinity } from './anti-affinity.ts'
import { gateContainer } from './gate-container.ts'
import { savedPrimary, understudy } from './keep-memory.ts'
import { memoryMarks } from './memory-marks.ts'
import { templateHash } from './template-hash.ts'

/** What the operator adds to every set's pods. */
export interface PodSettings {
  readonly wakerImage: string
  readonly wakeKey: Uint8Array
}

/**
 * The pod of a create action: the template as given, plus labels, owner, distance, and the gate of a cold backup. Of a
 * set that keeps memory, backups hold the stage for it and run nothing of their own.
 */
export function renderPod(
  set: ParsedSet,
  action: Extract<Action, { type: 'create' }>,
  settings: PodSettings,
): Wire<V1Pod> {
  const { kind, name, strategy, role } = action
  const { metadata, spec } = set.template
  const affinity = withAntiAffinity(spec.affinity, set, kind, strategy)
  const placed = { ...spec, schedulerName: set.schedulerName, ...(affinity ? { affinity } : {}) }
  const marks = set.memory && memoryMarks(set.template, set.memory, kind)
  const made = set.memory === undefined ? placed : forMemory(placed, set.memory, kind, settings)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: set.namespace,
      labels: {
        ...metadata?.labels,
        [labels.type]: kind,
        [labels.set]: set.name,
        [labels.strategy]: strategy,
        [labels.templateHash]: templateHash(set),
        ...marks?.labels,
        ...(role ? { [labels.slot]: String(role.slot) } : {}),
      },
      annotations: {
        ...metadata?.annotations,
        ...(role ? { [annotations.epoch]: String(role.epoch) } : {}),
        ...marks?.annotations,
      },
      ownerReferences: [ownerOf(set)],
    },
    spec: kind === 'coldbackup' ? { ...made, initContainers: withGate(made, set, name, settings) } : made,
  }
}

/** The owner reference of a set's pods. Without blockOwnerDeletion, which would need a right on finalizers. */
export const ownerOf = (set: ParsedSet) => ({
  apiVersion: apiVersionOf(backupPodSets),
  kind: backupPodSets.kind,
  name: set.name,
  uid: set.uid,
  controller: true,
})

function forMemory(
  spec: Wire<V1PodSpec>,
  { containers }: ParsedMemory,
  kind: PodKind,
  { wakerImage }: PodSettings,
): Wire<V1PodSpec> {
  switch (kind) {
    case 'primary':
      return savedPrimary(spec)
    // A cold backup wakes up as an understudy: whether it is one cannot be changed later.
    case 'hotbackup':
    case 'coldbackup':
      return understudy(spec, containers, wakerImage)
  }
}

function withGate(
  spec: Wire<V1PodSpec>,
  { uid, gatePosition, template }: ParsedSet,
  podName: string,
  { wakerImage, wakeKey }: PodSettings,
) {
  const digest = tokenDigest(deriveToken(wakeKey, uid, podName))
  const { initContainers: own = [], containers } = template.spec
  const gate = gateContainer(wakerImage, digest, [...own, ...containers])
  const init = spec.initContainers ?? []
  if (gatePosition === 'Last') return [...init, gate]
  // What prepares the stage comes before even the first position: it is nothing of the template's, and waking is faster.
  const ours = init.filter(({ name }) => name === holdInitContainer)
  return [...ours, gate, ...init.slice(ours.length)]
}
