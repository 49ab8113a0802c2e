import { missingRecordOf, servingRecordAnnotation } from '../../api/serving-record.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import { type Pod, pods as podResource } from '../../kube/resources.ts'

export interface MissingRecordsOptions {
  /** The pods of this node. */
  readonly pods: () => readonly Pod[]
  readonly api: Pick<Api, 'patch'>
  readonly clock: Clock
  readonly log: Log
}

/** The policies of the version before refuse a record, and an upgrade replaces them at any time. */
const everyMs = 600_000
const requestTimeoutMs = 5_000

/**
 * Writes the record of each pod whose condition an agent of the version before has written, until the signal fires. One
 * write at a time, and at most one per pod in ten minutes.
 */
export async function writeMissingRecords(
  { pods, api, clock, log }: MissingRecordsOptions,
  signal: AbortSignal,
): Promise<void> {
  const write = async ({ metadata: { namespace = '', name, uid, resourceVersion } }: Pod, text: string) => {
    // The version is a precondition: the condition may have changed since, and the facts with it.
    const metadata = { uid, resourceVersion, annotations: { [servingRecordAnnotation]: text } }
    await api.patch(
      podResource,
      { namespace, name },
      { type: 'merge', body: { metadata } },
      { subresource: 'status', timeoutMs: requestTimeoutMs, signal },
    )
    log.info({ pod: `${namespace}/${name}` }, 'record of an earlier condition written')
  }
  while (!signal.aborted) {
    for (const pod of pods()) {
      const text = missingRecordOf(pod)
      if (text === undefined) continue
      try {
        await write(pod, text)
      } catch (error) {
        if (signal.aborted) return
        if (isKubeError(error, 'NotFound', 'Conflict')) continue
        log.warn({ err: error, pod: pod.metadata.name }, 'cannot write the record of an earlier condition')
        // A pod may have no room for it. Any other refusal would meet the next pod, too.
        if (!isKubeError(error, 'Invalid')) break
      }
    }
    await clock.sleep(everyMs, signal).catch(() => undefined)
  }
}
