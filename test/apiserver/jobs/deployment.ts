import { randomBytes } from 'node:crypto'
import { deployments, replicaSets } from '../../../src/kube/resources.ts'
import type { JobsWorld } from './world.ts'

/**
 * Makes a Deployment with its ReplicaSet and pods, as their controllers would make them.
 * @param more spec of all its pods. @param own spec of the pods that are made here.
 */
export async function deploymentIn(
  world: Pick<JobsWorld, 'api' | 'namespace' | 'makePod'>,
  replicas: number,
  more: object = {},
  own: object = {},
) {
  const { api, namespace } = world
  const name = `d${randomBytes(4).toString('hex')}`
  const labels = { app: name, 'pod-template-hash': 'h' }
  const spec = {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'app', image: 'app' }], ...more },
    },
  }
  const { metadata } = await api.create(deployments, { metadata: { name }, spec }, { namespace })
  const status = { observedGeneration: metadata.generation, replicas, updatedReplicas: replicas }
  await api.patch(
    deployments,
    { namespace, name },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  )
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid: metadata.uid, controller: true }
  const set = await api.create(
    replicaSets,
    {
      metadata: { name: `${name}-h`, labels, ownerReferences: [owner] },
      spec: {
        ...spec,
        selector: { matchLabels: labels },
        template: { ...spec.template, metadata: { labels } },
      },
    },
    { namespace },
  )
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${name}-h`, uid: set.metadata.uid, controller: true },
  ]
  const made = await Promise.all(
    Array.from({ length: replicas }, (_, index) =>
      world.makePod({ name: `${name}-h-${index}`, labels, ownerReferences }, { ...more, ...own }),
    ),
  )
  return { name, set, pods: made }
}
