/** The pods of the installation, and their logs. */

import { labels } from '../../api/labels.ts'
import { nodeReports, parseReport } from '../../api/node-report.ts'
import { slotNumberIn } from '../../api/numbered-slot.ts'
import { isKubeError } from '../../kube/errors.ts'
import { listAll } from '../../kube/list-all.ts'
import { type Pod, pathOf, pods } from '../../kube/resources.ts'
import type { Places } from '../doctor/installation.ts'
import type { Session } from '../session.ts'

const componentLabel = 'app.kubernetes.io/component'

/** Returns the pods of the operator, and those of the agents. @throws KubeError. */
export async function installationPods(
  { api, call }: Session,
  { operatorNamespace, agentNamespace }: Places,
): Promise<{ readonly operators: readonly Pod[]; readonly agents: readonly Pod[] }> {
  const of = (namespace: string, component: string) =>
    listAll(api, pods, { namespace, labelSelector: `${componentLabel}=${component}` }, call)
  const [operators, agents] = await Promise.all([
    of(operatorNamespace, 'operator'),
    of(agentNamespace, 'agent'),
  ])
  return { operators: operators.objects, agents: agents.objects }
}

/** Returns the nodes on which a set has pods, or whose agents keep its memory. @throws KubeError. */
export async function nodesOfSet(
  { api, call, namespace }: Session,
  set: string,
): Promise<ReadonlySet<string>> {
  const [own, reports] = await Promise.all([
    listAll(api, pods, { namespace, labelSelector: `${labels.set}=${set}` }, call),
    listAll(api, nodeReports, {}, call).then(
      ({ objects }) => objects.map(parseReport),
      (error: unknown) => {
        if (isKubeError(error, 'Forbidden', 'NotFound')) return []
        throw error
      },
    ),
  ])
  return new Set([
    ...own.objects.flatMap(({ spec }) => spec?.nodeName ?? []),
    ...reports
      .filter(({ status }) =>
        status?.slots.some(it => it.namespace === namespace && slotNumberIn(set, it.name) !== undefined),
      )
      .map(({ metadata }) => metadata.name),
  ])
}

export interface LogQuery {
  readonly container?: string
  readonly sinceSeconds?: number
  /** RFC 3339, to the second. */
  readonly sinceTime?: string
  readonly tailLines?: number
  readonly previous?: boolean
  readonly limitBytes?: number
}

/** The most that is read of one log at once. */
export const mostLogBytes = 10 * 1024 * 1024

/** A line of a log. */
export interface LogLine {
  /** RFC 3339 with nine digits of the second, as the kubelet has received it: these compare as strings. */
  readonly at: string
  readonly pod: string
  readonly text: string
}

/** Reads the log of a pod of the installation. @throws KubeError. */
export async function readLog(
  { api, call }: Pick<Session, 'api' | 'call'>,
  { metadata: { namespace, name } }: Pick<Pod, 'metadata'>,
  query: LogQuery,
): Promise<readonly LogLine[]> {
  const { body } = await api.request('GET', pathOf(pods, { namespace, name, subresource: 'log' }), {
    ...call,
    query: {
      timestamps: 'true',
      limitBytes: String(mostLogBytes),
      ...Object.fromEntries(Object.entries(query).map(([key, value]) => [key, String(value)])),
    },
  })
  return typeof body === 'string' ? linesOf(name, body) : []
}

/** Lines without a time, such as one that the limit has cut, are left out. */
export const linesOf = (pod: string, text: string): readonly LogLine[] =>
  text.split('\n').flatMap(line => {
    const [, second, fraction = '', rest] =
      /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z (.*)$/s.exec(line) ?? []
    return second === undefined || rest === undefined
      ? []
      : [{ at: `${second}.${fraction.padEnd(9, '0')}Z`, pod, text: rest }]
  })

export const byTime = (a: LogLine, b: LogLine): number => (a.at === b.at ? 0 : a.at < b.at ? -1 : 1)
