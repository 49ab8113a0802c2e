import { annotations, labels, type PodKind } from '../../api/labels.ts'
import { kindLabelOf, kindLabels, retired } from '../../api/pod-kind.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Role, SlotActionOf } from '../decide/actions.ts'
import type { PodRef } from '../decide/pod-ref.ts'
import type { PodPort } from './context.ts'
import { patchPod } from './write-pod.ts'

/**
 * Converts a pod to another kind, in place. Label, slot and epoch change in one PATCH: a Service must never select a
 * pod with an old epoch.
 * @param openedGate container ID of the gate that was opened for this, so that the next pass knows that it is open.
 */
export function relabel(
  context: PodPort,
  pod: PodRef,
  from: PodKind,
  to: PodKind,
  role: Role | undefined,
  openedGate?: string,
): Promise<Pod> {
  return patchPod(context, pod, current => kindLabelOf(current) === from, {
    labels: { ...kindLabels(to), ...(role ? { [labels.slot]: String(role.slot) } : {}) },
    annotations: {
      ...(role ? { [annotations.epoch]: String(role.epoch) } : {}),
      ...(openedGate === undefined ? {} : { [annotations.openedGate]: openedGate }),
    },
  })
}

/** Marks a former primary as retired. It keeps its slot, epoch and owner; only its kind changes. */
export const retire = (context: PodPort, { pod }: SlotActionOf<'retire'>): Promise<Pod> =>
  patchPod(context, pod, current => kindLabelOf(current) === 'primary', {
    labels: kindLabels(retired),
  })
