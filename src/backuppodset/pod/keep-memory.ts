import type { V1PodSpec } from '@kubernetes/client-node'
import type { InjectedResources } from '../../api/injected-resources.ts'
import { podConditions } from '../../api/pod-contract.ts'
import type { Wire } from '../../kube/object.ts'
import { heldContainer, holdInit, holdPodVolume } from './hold-container.ts'
import { preferStage, requireStage } from './stage-affinity.ts'

type PodSpec = Wire<V1PodSpec>

/** Choices for an understudy that is made for the memory of one running pod. */
export interface UnderstudyOptions {
  /**
   * Omits the init containers that end: they have run for the memory that the pod is to get. Sidecars stay. Containers
   * without saved memory then start without them, too.
   */
  readonly skipInit?: boolean
  /**
   * `default`: `RuntimeDefault` unless `spec` has a profile. `asSource`: as in `spec`, which is that of the pod whose
   * memory it is to get. If no profile confines that pod, the agent does not restore its memory under one.
   */
  readonly seccomp?: 'default' | 'asSource'
}

/** Returns a primary whose memory is saved: the template as given, preferably on a node whose agent can save memory. */
export const savedPrimary = (spec: PodSpec): PodSpec => ({
  ...withSeccomp(spec),
  affinity: preferStage(spec.affinity),
})

/**
 * Returns an understudy: a pod of the same shape whose saved containers wait until an agent restores a memory in them.
 * Containers without saved memory run their app from the start, since no agent would start it later. No Service selects
 * the pod before it is on stage, because only the agent sets its readiness gate.
 * @param saved names of the containers whose memory is saved.
 * @param waker image and resources of the init container that installs the waker; undefined: the pod's gate installs
 *   it.
 */
export function understudy(
  spec: PodSpec,
  saved: readonly string[],
  waker: { readonly image: string; readonly resources: InjectedResources } | undefined,
  { skipInit = false, seccomp = 'default' }: UnderstudyOptions = {},
): PodSpec {
  const init = (spec.initContainers ?? []).filter(it => !skipInit || it.restartPolicy === 'Always')
  return {
    ...(seccomp === 'default' ? withSeccomp(spec) : spec),
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
 * Sets the runtime's default seccomp profile if the template has none: it forbids io_uring, which CRIU cannot dump, so
 * that programs fall back to other calls. The same in all pods: a restored process must not have more rights than its
 * new pod.
 */
function withSeccomp(spec: PodSpec): PodSpec {
  return {
    ...spec,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' }, ...spec.securityContext },
  }
}
