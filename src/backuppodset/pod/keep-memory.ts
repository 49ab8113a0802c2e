import type { V1PodSpec } from '@kubernetes/client-node'
import { podConditions } from '../../api/stage.ts'
import type { Wire } from '../../kube/object.ts'
import { heldContainer, holdInit, holdPodVolume } from './hold-container.ts'
import type { InjectedResources } from './injected-container.ts'
import { preferStage, requireStage } from './stage-affinity.ts'

type PodSpec = Wire<V1PodSpec>

/** A primary whose memory is saved: the template as given, where an agent can save it. */
export const savedPrimary = (spec: PodSpec): PodSpec => ({
  ...withSeccomp(spec),
  affinity: preferStage(spec.affinity),
})

/**
 * A pod of the same shape that only holds the stage: its containers wait for the memory that an agent brings back in
 * them. Those whose memory is not kept run from the start, as the template has them: nobody would start them later. No
 * Service finds the pod before it is on stage, because its readiness gate is written by the agent alone.
 * @param saved names of the containers whose memory is kept.
 * @param waker what puts the waker into the pod; undefined: its gate does.
 */
export function understudy(
  spec: PodSpec,
  saved: readonly string[],
  waker: { readonly image: string; readonly resources: InjectedResources } | undefined,
): PodSpec {
  const init = spec.initContainers ?? []
  return {
    ...withSeccomp(spec),
    affinity: requireStage(spec.affinity),
    initContainers: [
      ...(waker === undefined
        ? []
        : [holdInit(waker.image, saved, [...init, ...spec.containers], waker.resources)]),
      ...init,
    ],
    containers: spec.containers.map(it => (saved.includes(it.name) ? heldContainer(it) : it)),
    volumes: [...(spec.volumes ?? []), holdPodVolume],
    readinessGates: [...(spec.readinessGates ?? []), { conditionType: podConditions.serving }],
  }
}

/**
 * The runtime's default profile where the template names none: it forbids io_uring, which cannot be saved, so that
 * programs fall back to what can. The same in all pods: rights of restored memory must not exceed those of its new pod.
 */
function withSeccomp(spec: PodSpec): PodSpec {
  return {
    ...spec,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' }, ...spec.securityContext },
  }
}
