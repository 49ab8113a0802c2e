/** Writes of the report as answers of the API server: it is a voter of the primaries of this node. */
import { apiServerVoter, partsOf } from '../../api/fence.ts'
import { type NodeReport, nodeReports, silencesAnnotation } from '../../api/node-report.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'

/** The API server has taken a write of the report. */
export interface ApiAnswer {
  /** That of the voter. */
  readonly run: string
  /** When the write was sent, or earlier: `process.hrtime.bigint()`. */
  readonly sentNs: bigint
}

/** Returns the answer, from what the API server returned to a write; undefined: it says nothing about this node. */
export function answerOf({ metadata }: NodeReport, sentNs: bigint): ApiAnswer | undefined {
  const silences = metadata.annotations?.[silencesAnnotation] ?? '0'
  if (!/^\d{1,9}$/.test(silences)) return undefined
  return { run: partsOf(apiServerVoter({ uid: metadata.uid, silences: Number(silences) })).run, sentNs }
}

export interface Inquirer {
  readonly api: Pick<Api, 'patch'>
  readonly node: string
  readonly clock: Pick<Clock, 'now'>
  /** Monotonic clock of the node, ns. */
  readonly nowNs: () => bigint
}

/**
 * Asks the API server for an answer, by a write that changes only the time in the report. It does not wait for another
 * write that is under way: that one may hang.
 *
 * @throws KubeError.
 */
export async function askForAnswer(
  { api, node, clock, nowNs }: Inquirer,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ApiAnswer | undefined> {
  const sentNs = nowNs()
  const body = { status: { updatedAt: new Date(clock.now()).toISOString() } }
  const report = await api.patch(
    nodeReports,
    { name: node },
    { type: 'merge', body },
    { subresource: 'status', signal, timeoutMs },
  )
  return answerOf(report, sentNs)
}
