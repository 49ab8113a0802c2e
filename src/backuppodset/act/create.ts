import { isKubeError } from '../../kube/errors.ts'
import { controllerOf } from '../../kube/owner.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { bringState } from '../../slot/act/bring-state.ts'
import { takeOver } from '../../slot/act/take-over.ts'
import type { Action, Outcome } from '../plan.ts'
import { renderPod } from '../pod/render.ts'
import { viewOf } from '../pod/view.ts'
import { asOf } from '../revisions/revision.ts'
import type { ActContext } from './context.ts'

type Create = Extract<Action, { type: 'create' }>

const attempts = 3

/**
 * Creates a pod exactly once. After an ambiguous failure it reads the pod of that name, and if there is none it retries
 * with the same name, never with another one.
 */
export async function create(context: ActContext, action: Create): Promise<Pod> {
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

/**
 * Creates a pod that gets a state. It starts as a hot backup, which runs the app and which no Service selects. If the
 * operator crashes in between, the next leader finds a hot backup to convert.
 */
export async function createWithState(context: ActContext, action: Create): Promise<Outcome> {
  const { role } = action
  const made = await create(context, { ...action, kind: 'hotbackup', role: undefined })
  const pod = viewOf(made, undefined)
  if (pod === undefined) throw new Error(`pod ${action.name} was created with another label than requested`)
  const takeover = { pod, to: 'primary', role, wake: false, ...bringState(context, action, pod) } as const
  return takeOver<Action>(context, action, takeover)
}
