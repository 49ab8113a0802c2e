import { isKubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import type { PodRef } from '../decide/pod-ref.ts'
import { isFinished } from '../observe/candidate.ts'
import type { PodPort } from './context.ts'

/** Thrown when the pod has changed since the plan; the next pass sees the change. */
export class PodChangedError extends Error {
  override readonly name = 'PodChangedError'
  /** This pod (by uid) no longer exists. */
  readonly gone: boolean

  constructor(message: string, gone: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.gone = gone
  }
}

type Guard = (pod: Pod) => boolean

/**
 * Merges `metadata` into a live pod.
 * @param stillMeant must hold for the pod as re-read after a conflict.
 * @param metadata a function gets the pod as re-read, at first undefined: a replacement of a list must be derived from
 *   the list that it replaces.
 * @returns the pod as written. @throws PodChangedError, KubeError.
 */
export function patchPod(
  context: PodPort,
  pod: PodRef,
  stillMeant: Guard,
  metadata: object | ((current: Pod | undefined) => object),
): Promise<Pod> {
  const ref = { namespace: context.owner.namespace, name: pod.name }
  return withPreconditions(
    context,
    pod,
    current => isLive(current) && stillMeant(current),
    (preconditions, current) => {
      const merged = typeof metadata === 'function' ? metadata(current) : metadata
      return context.urgentApi.patch(
        pods,
        ref,
        { type: 'merge', body: { metadata: { ...merged, ...preconditions } } },
        { signal: context.signal },
      )
    },
  )
}

/**
 * Deletes a pod gracefully, with the hooks of its spec. Success if it no longer exists.
 * @param gracePeriodSeconds absent: that of its spec.
 */
export async function deletePod(
  context: PodPort,
  pod: PodRef,
  stillMeant: Guard,
  gracePeriodSeconds?: number,
): Promise<void> {
  const ref = { namespace: context.owner.namespace, name: pod.name }
  context.pendingDeletions.add({ ...ref, uid: pod.uid })
  try {
    await withPreconditions(context, pod, stillMeant, preconditions =>
      context.urgentApi.delete(
        pods,
        ref,
        { ...preconditions, ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }) },
        { signal: context.signal },
      ),
    )
  } catch (error) {
    if (error instanceof PodChangedError && error.gone) return
    context.pendingDeletions.remove(pod.uid)
    throw error
  }
}

const isLive: Guard = pod => pod.metadata.deletionTimestamp === undefined && !isFinished(pod)

const attempts = 4

/**
 * Writes under preconditions on uid and resourceVersion. Conflicts are normal, since the kubelet often writes the
 * status. After a conflict it reads the pod again, and retries with the new version if `stillMeant` holds.
 */
async function withPreconditions<T>(
  context: PodPort,
  { name, uid, resourceVersion }: PodRef,
  stillMeant: Guard,
  write: (preconditions: { uid: string; resourceVersion: string }, current: Pod | undefined) => Promise<T>,
): Promise<T> {
  let version = resourceVersion
  let current: Pod | undefined
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write({ uid, resourceVersion: version }, current)
    } catch (error) {
      if (isKubeError(error, 'NotFound')) throw new PodChangedError(`pod ${name} is gone`, true, error)
      if (!isKubeError(error, 'Conflict') || attempt === attempts) throw error
    }
    current = await read(context, name)
    if (current.metadata.uid !== uid) throw new PodChangedError(`pod ${name} was recreated`, true)
    if (!stillMeant(current)) throw new PodChangedError(`pod ${name} has changed since it was chosen`, false)
    version = current.metadata.resourceVersion
  }
}

async function read({ urgentApi, owner, signal }: PodPort, name: string): Promise<Pod> {
  try {
    return await urgentApi.get(pods, { namespace: owner.namespace, name }, { signal })
  } catch (error) {
    if (isKubeError(error, 'NotFound')) throw new PodChangedError(`pod ${name} is gone`, true, error)
    throw error
  }
}
