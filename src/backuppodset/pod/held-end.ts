/** A hook that gives the agent of a deleted pod time to save its memory once more. */
import type { V1PodSpec } from '@kubernetes/client-node'
import type { ParsedSet } from '../../api/parse.ts'
import { heldEnd, heldEndAnnotation } from '../../api/pod-contract.ts'
import type { Wire } from '../../kube/object.ts'
import type { Pod } from '../../kube/resources.ts'

export interface HeldEnd {
  /** For so long the kubelet waits before it sends the signal to end. */
  readonly seconds: number
  /** Names of the containers that get the hook. */
  readonly containers: readonly string[]
}

/** Kubernetes' default, seconds. */
const usualGrace = 30

/**
 * Returns the hook for pods that are to lose nothing when they are deleted; undefined: there is no time for it in their grace period, or a
 * container has a hook of its own, which tells the app of its end.
 */
export function heldEndOf({
  isNumbered,
  memory,
  template,
}: Pick<ParsedSet, 'isNumbered' | 'memory' | 'template'>): HeldEnd | undefined {
  if (!isNumbered || memory === undefined) return undefined
  const { spec } = template
  const saved = spec.containers.filter(({ name }) => memory.containers.includes(name))
  if (saved.some(({ lifecycle }) => lifecycle?.preStop !== undefined)) return undefined
  // The API server refuses a hook as long as the grace period, and the app needs time to end by itself, too.
  const seconds = Math.min(heldEnd.max, (spec.terminationGracePeriodSeconds ?? usualGrace) - 1)
  return seconds < heldEnd.min ? undefined : { seconds, containers: memory.containers }
}

/**
 * Returns the grace period of a pod whose app has ended for good, seconds: the hook would keep it for as long as it sleeps. Undefined: that
 * of its spec, for it has no such hook, or other containers need their time.
 */
export const graceWithoutApp = ({ metadata, spec }: Pod): number | undefined =>
  metadata.annotations?.[heldEndAnnotation] !== undefined &&
  spec?.containers.every(({ lifecycle }) => lifecycle?.preStop?.sleep !== undefined)
    ? 1
    : undefined

/** Sleeps in the kubelet: no shell, no port of the node, and no setting that pod security forbids. */
export const withHeldEnd = (spec: Wire<V1PodSpec>, { seconds, containers }: HeldEnd): Wire<V1PodSpec> => ({
  ...spec,
  containers: spec.containers.map(each =>
    containers.includes(each.name)
      ? { ...each, lifecycle: { ...each.lifecycle, preStop: { sleep: { seconds } } } }
      : each,
  ),
})
