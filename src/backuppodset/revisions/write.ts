import { labels } from '../../api/labels.ts'
import { isKubeError } from '../../kube/errors.ts'
import { apiVersionOf, controllerRevisions } from '../../kube/resources.ts'
import { controllerReference } from '../../slot/decide/owner.ts'
import type { ActContext } from '../act/context.ts'
import { type Revision, revisionName, type StoredRevision } from './revision.ts'

type Context = Pick<ActContext, 'api' | 'owner' | 'signal'>

/** Stores a template. An existing revision of the same name is identical: its name is the hash of its content. */
export async function record(
  { api, owner, signal }: Context,
  revision: Revision,
  number: number,
): Promise<void> {
  const body = {
    apiVersion: apiVersionOf(controllerRevisions),
    kind: controllerRevisions.kind,
    metadata: {
      name: revisionName(owner.name, revision),
      namespace: owner.namespace,
      labels: {
        [labels.set]: owner.name,
        [labels.templateHash]: revision.templateHash,
        [labels.restoreHash]: revision.restoreHash,
      },
      ownerReferences: [controllerReference(owner)],
    },
    data: { template: revision.template, containers: revision.containers },
    revision: number,
  }
  try {
    await api.create(controllerRevisions, body, { namespace: owner.namespace, signal })
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error
  }
}

/** Deletes a template that no pod and no memory needs any more. */
export async function prune(
  { api, owner, signal }: Context,
  { name, uid, resourceVersion }: StoredRevision,
): Promise<void> {
  try {
    await api.delete(
      controllerRevisions,
      { namespace: owner.namespace, name },
      { uid, resourceVersion },
      { signal },
    )
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
  }
}
