import { isKubeError } from '../../kube/errors.ts'
import { controllerOf } from '../../kube/owner.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import type { Action } from '../plan.ts'
import { renderPod } from '../pod/render.ts'
import { asOf } from '../revisions/revision.ts'
import type { ActContext } from './context.ts'

const attempts = 3

/**
 * Creates a pod exactly once. After an ambiguous failure it reads the pod of that name, and if there is none it retries
 * with the same name, never with another one.
 */
export async function create(context: ActContext, action: Extract<Action, { type: 'create' }>): Promise<Pod> {
  const { api, set, settings, signal } = context
  const ref = { namespace: set.namespace, name: action.name }
  const body = renderPod(asOf(set, action.revision), action, settings)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await api.create(pods, body, { namespace: set.namespace, signal })
    } catch (error) {
      const ambiguous = isKubeError(error) && error.ambiguous
      if (!ambiguous && !isKubeError(error, 'AlreadyExists')) throw error
      const existing = await api.get(pods, ref, { signal }).catch((reason: unknown) => {
        if (isKubeError(reason, 'NotFound')) return undefined
        throw reason
      })
      if (existing !== undefined && controllerOf(existing)?.uid === set.uid) return existing
      if (existing !== undefined || attempt === attempts) throw error
    }
  }
}
