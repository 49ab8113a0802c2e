import { podConditions, type ServingRecord } from '../../api/pod-contract.ts'
import { formatServingRecord, servingRecordAnnotation } from '../../api/serving-record.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import { pods } from '../../kube/resources.ts'

export interface PodCondition {
  readonly type: (typeof podConditions)[keyof typeof podConditions]
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
  /** The facts behind the condition `serving`, for readers that are programs. */
  readonly record?: ServingRecord
  /**
   * The condition `serving` of a pod that has none yet, in the same write. The version of the pod is a precondition: a
   * promotion may have begun since, and this write must not replace what that has said.
   */
  readonly gate?: Pick<PodCondition, 'status' | 'reason' | 'message'> & { readonly ifVersion: string }
}

/** A pod as a write has left it. */
export interface WrittenPod {
  /** Absent: nothing was written. */
  readonly annotations?: Readonly<Record<string, string>>
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
 * @returns undefined if this very pod no longer exists, or has another version than `gate` requires.
 * @throws KubeError.
 */
export async function patchCondition(
  { api, clock }: { readonly api: Pick<Api, 'patch'>; readonly clock: Clock },
  { namespace, name, uid }: PodRef,
  condition: PodCondition,
  signal?: AbortSignal,
): Promise<WrittenPod | undefined> {
  const lastTransitionTime = rfc3339(clock.now())
  const { record, gate } = condition
  const resourceVersion = gate?.ifVersion
  const patch = (annotations: Readonly<Record<string, string | null>>) =>
    api.patch(
      pods,
      { namespace, name },
      {
        // A strategic patch merges conditions by type.
        type: 'strategic',
        body: {
          // The uid is a precondition: a pod of the same name may be another one.
          metadata: { uid, annotations, ...(resourceVersion !== undefined && { resourceVersion }) },
          status: { conditions: conditionsIn(condition).map(each => ({ ...each, lastTransitionTime })) },
        },
      },
      { subresource: 'status', timeoutMs: requestTimeoutMs, ...(signal === undefined ? {} : { signal }) },
    )
  const isServing = condition.type === podConditions.serving
  // Null removes the record of an earlier condition.
  const text = (record && formatServingRecord(record, condition.message)) ?? null
  try {
    const { metadata } = await patch(isServing ? { [servingRecordAnnotation]: text } : {}).catch(
      (error: unknown) => {
        // The policies of the version before let agents write no annotation, and a pod may have no room for one more.
        if (!isServing || !isKubeError(error, 'Forbidden', 'Invalid')) throw error
        return patch({})
      },
    )
    return { annotations: metadata.annotations ?? {} }
  } catch (error) {
    if (isKubeError(error, 'NotFound', 'Conflict')) return undefined
    throw error
  }
}

/** Returns the conditions that the write of this one brings, as a pod has them. */
export const conditionsIn = ({ type, gate, ...own }: PodCondition) =>
  [{ type, ...own }, ...(gate ? [{ type: podConditions.serving, ...gate }] : [])].map(
    ({ type, status, reason, message }) => ({ type, status, reason, message }),
  )

const requestTimeoutMs = 5_000

/** Whole seconds, as in Kubernetes' times. */
const rfc3339 = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
