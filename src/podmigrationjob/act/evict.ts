/** The removal of a pod, in the way that the configuration chooses. */
import { readAnnotation } from '../../api/json-annotation.ts'
import type { EvictionPolicy, MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { type JobDeleteOptions, jobConditions, softEvictionAnnotation } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import { isKubeError, type KubeErrorCode } from '../../kube/errors.ts'
import { pathOf, pods } from '../../kube/resources.ts'
import { evictReasons, initiatorOf } from '../decide/evict-directly.ts'
import type { Action, JobView } from '../decide/view.ts'
import { conditionOf, failed, statusAfter, type Word } from '../decide/word.ts'
import { longestSoftEviction } from '../observe/pod-facts.ts'
import type { Performer } from './performer.ts'

type Evict = Extract<Action, { type: 'evict' }>

/** Answers that another request would get as well. */
export const finalCodes: readonly KubeErrorCode[] = ['Forbidden', 'Invalid', 'BadRequest']

/** The job's options replace those of the configuration as a whole. */
export const deleteOptionsOf = (
  { parsed }: Pick<JobView, 'parsed'>,
  { defaultDeleteOptions }: Pick<MigrationControllerArgs, 'defaultDeleteOptions'>,
): JobDeleteOptions => (parsed.ok ? parsed.job.deleteOptions : undefined) ?? defaultDeleteOptions ?? {}

/** Requests the removal, and writes what the API server says about it. */
export async function evict(
  { view, pod }: Evict,
  args: MigrationControllerArgs,
  { api, writer, clock, requests, noteEviction }: Performer,
  signal: AbortSignal,
): Promise<void> {
  const write = (word: Word) => writer.write(view, statusAfter(view, word, clock.now()), signal)
  const options = deleteOptionsOf(view, args)
  const { uid = pod.uid } = options.preconditions ?? {}
  if (uid !== pod.uid) {
    const message = `the pod has uid ${pod.uid}, and deleteOptions.preconditions wants ${uid}`
    const condition = { type: jobConditions.eviction, status: 'False' } as const
    await write({ ...failed(evictReasons.failed, message), condition })
    return
  }
  requests.note(view.uid, 'unanswered')
  try {
    await request(args.evictionPolicy, { api, pod, options, view, now: clock.now() }, signal)
  } catch (error) {
    // The next pass sees that the pod is gone, or that another one has its name.
    if (isKubeError(error) && !error.ambiguous && error.code !== 'Aborted') requests.note(view.uid, 'none')
    if (isKubeError(error, 'NotFound')) return
    if (!isKubeError(error) || error.ambiguous || error.code === 'Aborted') throw error
    const isFinal = finalCodes.includes(error.code)
    noteEviction(isFinal ? 'failed' : 'refused')
    const word = isFinal ? failed(evictReasons.failed, error.message) : refusedNow(error.message)
    await write({ ...word, condition: { type: jobConditions.eviction, status: 'False' } })
    return
  }
  noteEviction('accepted')
  // The cache of pods shows the annotation soon. Until then it counts as perhaps written, so that no job ends and leaves it behind.
  if (args.evictionPolicy === 'SoftEviction') return
  // From now on the job cannot be aborted. An abort that refuses this write comes too late: the next pass writes it again.
  requests.note(view.uid, 'accepted')
  if (conditionOf(view.status, jobConditions.eviction)?.reason === evictReasons.evicting) return
  const word = {
    phase: 'Running',
    reason: evictReasons.evicting,
    message: 'the pod is being deleted',
  } as const
  await write({ ...word, condition: { type: jobConditions.eviction, status: 'False' } })
}

interface Request {
  readonly api: Performer['api']
  readonly view: JobView
  readonly pod: Evict['pod']
  readonly options: JobDeleteOptions
  readonly now: number
}

/** Each carries the uid: a namesake is another pod. */
async function request(
  policy: EvictionPolicy,
  { api, view, pod, options, now }: Request,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = pod
  const { gracePeriodSeconds, preconditions } = options
  switch (policy) {
    case 'Eviction': {
      const deleteOptions = { ...options, preconditions: { ...preconditions, uid } }
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions }
      const path = pathOf(pods, { namespace, name, subresource: 'eviction' })
      await api.request('POST', path, { body, contentType: 'application/json', signal })
      return
    }
    case 'Delete': {
      const { resourceVersion } = preconditions ?? {}
      await api.delete(pods, { namespace, name }, { uid, resourceVersion, gracePeriodSeconds }, { signal })
      return
    }
    case 'SoftEviction': {
      const { resourceVersion } = preconditions ?? {}
      const word = {
        timestamp: new Date(now).toISOString(),
        deleteOptions: options,
        initiator: initiatorOf(view),
      }
      const annotations = { [softEvictionAnnotation]: JSON.stringify(word) }
      const metadata = { uid, ...(resourceVersion !== undefined && { resourceVersion }), annotations }
      await api.patch(pods, { namespace, name }, { type: 'merge', body: { metadata } }, { signal })
      return
    }
    default:
      policy satisfies never
  }
}

/**
 * Asks for the grace period of the job where the ReplicaSet deletes the pod. The API server shortens the grace period of a pod that is being
 * deleted, and never lengthens it. Whatever it answers, the ReplicaSet deletes the pod.
 */
export async function shorten(
  api: Performer['api'],
  { view, pod }: Extract<Action, { type: 'shorten' }>,
  { gracePeriodSeconds }: JobDeleteOptions,
  signal: AbortSignal,
): Promise<void> {
  const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }
  await request('Eviction', { api, view, pod, options, now: 0 }, signal).catch((error: unknown) => {
    if (!isKubeError(error, 'NotFound', 'Conflict', 'Throttled', ...finalCodes)) throw error
  })
}

const refusedNow = (message: string): Word => ({ phase: 'Running', reason: evictReasons.failed, message })

/** Takes the request of a soft eviction back, unless another job or tool has replaced it. */
export async function withdraw(
  api: Pick<Api, 'get' | 'patch'>,
  { view, pod }: Extract<Action, { type: 'withdraw' }>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = pod
  try {
    const { metadata } = await api.get(pods, { namespace, name }, { signal })
    const text = metadata.annotations?.[softEvictionAnnotation]
    const { initiator } = readAnnotation(text, longestSoftEviction) ?? {}
    if (metadata.uid !== uid || initiator !== initiatorOf(view)) return
    const { resourceVersion } = metadata
    const body = { metadata: { uid, resourceVersion, annotations: { [softEvictionAnnotation]: null } } }
    await api.patch(pods, { namespace, name }, { type: 'merge', body }, { signal })
  } catch (error) {
    // The next pass sees what has changed.
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
  }
}
