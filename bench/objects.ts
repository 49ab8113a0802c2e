import type { V1PodTemplateSpec, V1Probe } from '@kubernetes/client-node'
import { type BackupPodSet, backupPodSets } from '../src/api/backuppodset.ts'
import { labels } from '../src/api/labels.ts'
import type { Wire } from '../src/kube/object.ts'
import { apiVersionOf } from '../src/kube/resources.ts'
import type { Counts } from './observe/state.ts'

export const counterPort = 8080

const probe: Wire<V1Probe> = {
  periodSeconds: 1,
  httpGet: { path: '/healthz', port: counterPort },
}

/**
 * Returns the workload of all benches: a static HTTP counter that stops at once on SIGTERM, with a 1 s readiness probe.
 */
export function counterTemplate(
  image: string,
  app: string,
  more: Partial<NonNullable<Wire<V1PodTemplateSpec>['spec']>> & {
    readonly stopAfterSeconds?: number
    readonly livenessProbe?: Wire<V1Probe>
  } = {},
): Wire<V1PodTemplateSpec> {
  const { stopAfterSeconds, livenessProbe, ...spec } = more
  return {
    metadata: { labels: { app } },
    spec: {
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'counter',
          image,
          imagePullPolicy: 'IfNotPresent',
          ports: [{ containerPort: counterPort }],
          readinessProbe: probe,
          ...(livenessProbe === undefined ? {} : { livenessProbe }),
          ...(stopAfterSeconds === undefined
            ? {}
            : { lifecycle: { preStop: { sleep: { seconds: stopAfterSeconds } } } }),
        },
      ],
      ...spec,
    },
  }
}

export function setOf(
  name: string,
  counts: Counts,
  template: Wire<V1PodTemplateSpec>,
  more: Partial<BackupPodSet['spec']> = {},
): object {
  return {
    apiVersion: apiVersionOf(backupPodSets),
    kind: backupPodSets.kind,
    metadata: { name },
    spec: { ...sizesOf(counts), template, ...more },
  }
}

export const sizesOf = ({ primary, hotbackup, coldbackup }: Counts) => ({
  replicas: primary,
  hotBackups: hotbackup,
  coldBackups: coldbackup,
})

export function deploymentOf(name: string, replicas: number, template: Wire<V1PodTemplateSpec>): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { replicas, selector: { matchLabels: template.metadata?.labels ?? {} }, template },
  }
}

/** Returns a Service as a user would write it: for primaries of a set, or for any pods with the given labels. */
export function serviceOf(name: string, selector: Readonly<Record<string, string>> | undefined): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: {
      ...(selector === undefined ? {} : { selector }),
      ports: [{ name: 'http', port: counterPort, targetPort: counterPort }],
    },
  }
}

export const primariesOf = (set: string) => ({ [labels.set]: set, [labels.type]: 'primary' })
