import type { V1Pod, V1PodSpec } from '@kubernetes/client-node'
import { type InjectedResources, injectedResources } from '../../api/injected-resources.ts'
import { annotations, labels, type PodKind } from '../../api/labels.ts'
import type { ParsedMemory } from '../../api/memory.ts'
import type { ParsedSet } from '../../api/parse.ts'
import {
  confinedAnnotation,
  heldEnd,
  heldEndAnnotation,
  migrationAnnotation,
  successorAnnotation,
} from '../../api/pod-contract.ts'
import { kindLabels } from '../../api/pod-kind.ts'
import type { Wire } from '../../kube/object.ts'
import { controllerReference } from '../../slot/decide/owner.ts'
import { deriveToken, tokenDigest, type WakeKeys, wakeKeyId } from '../../slot/gate/token.ts'
import { ownerOf } from '../owner.ts'
import type { Action } from '../plan.ts'
import { withAntiAffinity } from './anti-affinity.ts'
import { gateContainer } from './gate-container.ts'
import { heldEndOf, withHeldEnd } from './held-end.ts'
import { installPaths, mount } from './hold-container.ts'
import { hasInitInMemory } from './init-in-memory.ts'
import { savedPrimary, understudy } from './keep-memory.ts'
import { memoryMarks } from './memory-marks.ts'
import { withPlacement } from './stage-affinity.ts'
import { templateHash } from './template-hash.ts'

/** Settings for the operator's additions to the pods of every set. */
export interface PodSettings {
  readonly wakerImage: string
  readonly wakeKeys: WakeKeys
  /** Resources of the injected containers; absent: `injectedResources`. */
  readonly injected?: InjectedResources | undefined
}

/**
 * Returns the pod of a create action: the template as given, plus labels, owner, anti-affinity and the gate of a cold
 * backup. If the set keeps memory, its backups are understudies, whose saved containers run no app.
 */
export function renderPod(
  set: ParsedSet,
  action: Extract<Action, { type: 'create' }>,
  settings: PodSettings,
): Wire<V1Pod> {
  const { kind, name, strategy, role, successorOf, near } = action
  const { metadata, spec } = set.template
  // A pod created as a successor gets the anti-affinity of a primary.
  const kindThere = successorOf ? 'primary' : kind
  const distant = withAntiAffinity(spec.affinity, set, kindThere, strategy, near?.besidePrimary)
  const affinity = withPlacement(distant, successorOf ?? { near: near?.nodes })
  const placed = { ...spec, schedulerName: set.schedulerName, ...(affinity ? { affinity } : {}) }
  const marks = set.memory && memoryMarks(set.template, set.memory, kind)
  const held = heldEndOf(set)
  const kept = held === undefined ? placed : withHeldEnd(placed, held)
  // In a MigratingPod, such a pod is the same pod at another place.
  const skipInit =
    set.isNumbered === true && successorOf !== undefined && hasInitInMemory(spec, set.memory?.containers)
  const made = set.memory === undefined ? placed : forMemory(kept, set.memory, { kind, skipInit }, settings)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: set.namespace,
      labels: {
        ...metadata?.labels,
        ...kindLabels(kind),
        [labels.set]: set.name,
        [labels.strategy]: strategy,
        [labels.templateHash]: templateHash(set),
        ...(kind === 'coldbackup' ? { [labels.wakeKey]: wakeKeyId(settings.wakeKeys[0]) } : {}),
        ...marks?.labels,
        ...(role ? { [labels.slot]: String(role.slot) } : {}),
      },
      annotations: {
        ...metadata?.annotations,
        ...(role ? { [annotations.epoch]: String(role.epoch) } : {}),
        ...marks?.annotations,
        ...(held && { [heldEndAnnotation]: String(Math.min(held.seconds, heldEnd.known)) }),
        ...(successorOf ? { [successorAnnotation]: String(successorOf.slot) } : {}),
        ...(isConfined(successorOf) ? { [confinedAnnotation]: 'yes' } : {}),
        ...(successorOf?.migration ? { [migrationAnnotation]: successorOf.migration } : {}),
      },
      ownerReferences: [controllerReference(ownerOf(set))],
    },
    spec: kind === 'coldbackup' ? { ...made, initContainers: withGate(made, set, name, settings) } : made,
  }
}

const isConfined = (successorOf: Extract<Action, { type: 'create' }>['successorOf']): boolean =>
  successorOf !== undefined &&
  (successorOf.notOn !== undefined || Object.keys(successorOf.nodeSelector ?? {}).length > 0)

function forMemory(
  spec: Wire<V1PodSpec>,
  { containers }: ParsedMemory,
  { kind, skipInit }: { readonly kind: PodKind; readonly skipInit: boolean },
  { wakerImage, injected = injectedResources }: PodSettings,
): Wire<V1PodSpec> {
  switch (kind) {
    case 'primary':
      return savedPrimary(spec)
    // A cold backup wakes up as an understudy: this cannot be changed after its creation.
    case 'hotbackup':
      return understudy(spec, containers, { image: wakerImage, resources: injected }, { skipInit })
    // Its gate also installs the waker: it runs where the install container would.
    case 'coldbackup':
      return understudy(spec, containers, undefined)
  }
}

function withGate(
  spec: Wire<V1PodSpec>,
  { uid, gatePosition, template, memory }: ParsedSet,
  podName: string,
  { wakerImage, wakeKeys: [wakeKey], injected = injectedResources }: PodSettings,
) {
  const digest = tokenDigest(deriveToken(wakeKey, uid, podName))
  const { initContainers: own = [], containers } = template.spec
  const beside = [...own, ...containers]
  const gate = memory
    ? {
        ...gateContainer(wakerImage, digest, beside, injected, installPaths(memory.containers)),
        volumeMounts: [mount],
      }
    : gateContainer(wakerImage, digest, beside, injected)
  const init = spec.initContainers ?? []
  return gatePosition === 'Last' ? [...init, gate] : [gate, ...init]
}
