import type { podConditions } from '../api/stage.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError } from '../kube/errors.ts'
import { pods } from '../kube/resources.ts'

export interface PodCondition {
  readonly type: (typeof podConditions)[keyof typeof podConditions]
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

export interface PodRef {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/**
 * Writes one condition of one pod, in one PATCH that leaves all other conditions and concurrent writes of the kubelet
 * alone.
 *
 * @returns false if this very pod no longer exists.
 * @throws KubeError.
 */
export async function patchCondition(
  { api, clock }: { readonly api: Pick<Api, 'patch'>; readonly clock: Clock },
  { namespace, name, uid }: PodRef,
  condition: PodCondition,
  signal?: AbortSignal,
): Promise<boolean> {
  // A strategic patch merges conditions by type. The uid is a precondition: a pod of the same name may be another one.
  const body = {
    metadata: { uid },
    status: { conditions: [{ ...condition, lastTransitionTime: rfc3339(clock.now()) }] },
  }
  try {
    await api.patch(
      pods,
      { namespace, name },
      { type: 'strategic', body },
      { subresource: 'status', timeoutMs: requestTimeoutMs, ...(signal === undefined ? {} : { signal }) },
    )
    return true
  } catch (error) {
    if (isKubeError(error, 'NotFound', 'Conflict')) return false
    throw error
  }
}

const requestTimeoutMs = 5_000

/** Whole seconds, as in Kubernetes' times. */
const rfc3339 = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
