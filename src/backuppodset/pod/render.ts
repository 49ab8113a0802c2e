import type { V1Pod } from '@kubernetes/client-node'
import { backupPodSets } from '../../api/backuppodset.ts'
import { annotations, labels } from '../../api/labels.ts'
import type { ParsedSet } from '../../api/parse.ts'
import type { Wire } from '../../kube/object.ts'
import { apiVersionOf } from '../../kube/resources.ts'
import type { Action } from '../plan.ts'
import { deriveToken, tokenDigest } from '../wake/token.ts'
import { withAntiAffinity } from './anti-affinity.ts'
import { gateContainer } from './gate-container.ts'
import { templateHash } from './template-hash.ts'

/** What the operator adds to every set's pods. */
export interface PodSettings {
  readonly wakerImage: string
  readonly wakeKey: Uint8Array
}

/** The pod of a create action: the template as given, plus labels, owner, distance, and the gate of a cold backup. */
export function renderPod(
  set: ParsedSet,
  action: Extract<Action, { type: 'create' }>,
  settings: PodSettings,
): Wire<V1Pod> {
  const { kind, name, strategy, role } = action
  const { metadata, spec } = set.template
  const affinity = withAntiAffinity(spec.affinity, set, kind, strategy)
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
        [labels.templateHash]: templateHash(set.template),
        ...(role ? { [labels.slot]: String(role.slot) } : {}),
      },
      annotations: {
        ...metadata?.annotations,
        ...(role ? { [annotations.epoch]: String(role.epoch) } : {}),
      },
      ownerReferences: [ownerOf(set)],
    },
    spec: {
      ...spec,
      schedulerName: set.schedulerName,
      ...(affinity ? { affinity } : {}),
      ...(kind === 'coldbackup' ? { initContainers: initContainersOf(set, name, settings) } : {}),
    },
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

function initContainersOf(set: ParsedSet, podName: string, { wakerImage, wakeKey }: PodSettings) {
  const { spec } = set.template
  const own = spec.initContainers ?? []
  const gate = gateContainer(wakerImage, tokenDigest(deriveToken(wakeKey, set.uid, podName)), [
    ...own,
    ...spec.containers,
  ])
  return set.gatePosition === 'First' ? [gate, ...own] : [...own, gate]
}
