/** The MigratingPod that the operator keeps for a Job. */
import { createHash } from 'node:crypto'
import type { PodTemplate } from '../api/backuppodset.ts'
import { jobIntervalAnnotation, jobSpecAnnotation } from '../api/migrating-job.ts'
import { type MigratingPod, type MigratingPodSpec, migratingPods } from '../api/migrating-pod.ts'
import { ownerReference } from '../kube/owner.ts'
import { apiVersionOf, type Job, jobs } from '../kube/resources.ts'

/**
 * Returns the spec: the template of the Job, with the labels by which `kubectl logs job/NAME` finds the pod. The kubelet must not
 * restart an app that has ended with success, and with `Never` it would end pods in which a restore is to be tried again.
 */
export function podSpecOf({ metadata, spec }: Job): MigratingPodSpec {
  const interval = metadata.annotations?.[jobIntervalAnnotation]
  const { metadata: marks, spec: pod } = spec?.template ?? {}
  const { labels = {}, annotations = {} } = marks ?? {}
  const template: PodTemplate = {
    metadata: { labels, annotations },
    spec: { containers: [], ...pod, restartPolicy: 'OnFailure' },
  }
  return {
    suspend: spec?.suspend === true,
    ...(interval !== undefined && { checkpoint: { interval } }),
    template,
  }
}

const hashOf = (spec: MigratingPodSpec): string =>
  createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16)

/** Returns the MigratingPod to create. */
export const newPod = (job: Job, spec: MigratingPodSpec) => ({
  apiVersion: apiVersionOf(migratingPods),
  kind: migratingPods.kind,
  metadata: {
    name: job.metadata.name,
    namespace: job.metadata.namespace,
    annotations: { [jobSpecAnnotation]: hashOf(spec) },
    ownerReferences: [ownerReference(jobs, job.metadata)],
  },
  spec,
})

/** Returns the MigratingPod with this spec, to replace it; undefined if it was written with it. Fields that the Job does not decide stay. */
export function updatedPod(pod: MigratingPod, spec: MigratingPodSpec): MigratingPod | undefined {
  const hash = hashOf(spec)
  const { annotations, ...metadata } = pod.metadata
  if (annotations?.[jobSpecAnnotation] === hash && (pod.spec.suspend === true) === spec.suspend)
    return undefined
  return {
    ...pod,
    ...{ apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind },
    metadata: { ...metadata, annotations: { ...annotations, [jobSpecAnnotation]: hash } },
    spec: { ...pod.spec, ...spec },
  }
}
