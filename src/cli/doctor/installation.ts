/** Everything that `doctor` examines, read once, including the errors of parts that could not be read. */
import { type BackupPodSet, backupPodSets } from '../../api/backuppodset.ts'
import { type NodeReport, nodeReports, parseReport } from '../../api/node-report.ts'
import { listAll } from '../../kube/list-all.ts'
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
  type DaemonSet,
  type Deployment,
  daemonSets,
  deployments,
  type Lease,
  type LimitRange,
  leases,
  limitRanges,
  type Node,
  nodes,
  type Secret,
  secrets,
} from '../../kube/resources.ts'
import type { Session } from '../session.ts'
import { asked, type Right, readRights } from './rights.ts'

export type Part<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown }

export interface Identity {
  readonly user: string
  /** Wall clock of the API server, ms. */
  readonly now: number
}

export interface Installation {
  /** Version of this program. */
  readonly version: string
  readonly server: string
  readonly kubernetes: string
  readonly identity: Part<Identity>
  readonly crds: Readonly<Record<'backuppodsets' | 'nodereports', Part<CustomResourceDefinition>>>
  readonly operator: Part<Deployment>
  readonly leadership: Part<Lease>
  readonly wakeKey: Part<Secret>
  readonly agents: Part<DaemonSet>
  readonly nodes: Part<readonly Node[]>
  readonly reports: Part<readonly NodeReport[]>
  /** Sets of all namespaces if the rights allow it, else of the session's namespace. */
  readonly sets: Part<readonly BackupPodSet[]>
  /** LimitRanges of all namespaces if the rights allow it, else of the session's namespace. */
  readonly limitRanges: Part<readonly LimitRange[]>
  readonly rights: readonly Right[]
}

export interface Places {
  readonly operatorNamespace: string
  readonly agentNamespace: string
}

/** @throws KubeError when the API server cannot be reached or rejects the user's credentials; nothing else. */
export async function readInstallation(
  session: Session,
  { operatorNamespace, agentNamespace }: Places,
): Promise<Installation> {
  const { api, call, namespace, version, server } = session
  // The first call shows whether the API server answers at all; its failure is the whole answer.
  const kubernetes = await gitVersion(session)
  const name = 'understudy-operator'
  const crd = (plural: string) =>
    part(api.get(customResourceDefinitions, { name: `${plural}.${backupPodSets.group}` }, call))
  const everySet = listAll(api, backupPodSets, {}, call)
    .catch(() => listAll(api, backupPodSets, { namespace }, call))
    .then(({ objects }) => objects)
  const everyLimit = listAll(api, limitRanges, {}, call)
    .catch(() => listAll(api, limitRanges, { namespace }, call))
    .then(({ objects }) => objects)
  const [
    sets,
    limits,
    ofSets,
    ofReports,
    reports,
    operator,
    leadership,
    wakeKey,
    agents,
    found,
    identity,
    rights,
  ] = await Promise.all([
    part(everySet),
    part(everyLimit),
    crd(backupPodSets.plural),
    crd(nodeReports.plural),
    part(listAll(api, nodeReports, {}, call).then(({ objects }) => objects.map(parseReport))),
    part(api.get(deployments, { namespace: operatorNamespace, name }, call)),
    part(api.get(leases, { namespace: operatorNamespace, name }, call)),
    part(api.get(secrets, { namespace: operatorNamespace, name: 'understudy-wake-key' }, call)),
    part(api.get(daemonSets, { namespace: agentNamespace, name: 'understudy-agent' }, call)),
    part(listAll(api, nodes, {}, call).then(({ objects }) => objects)),
    part(whoami(session)),
    readRights(session, asked({ namespace, operatorNamespace, agentNamespace })),
  ])
  return {
    version,
    server,
    kubernetes,
    identity,
    crds: { backuppodsets: ofSets, nodereports: ofReports },
    operator,
    leadership,
    wakeKey,
    agents,
    nodes: found,
    reports,
    sets,
    limitRanges: limits,
    rights,
  }
}

const part = <T>(promise: Promise<T>): Promise<Part<T>> =>
  promise.then(
    value => ({ ok: true, value }),
    (error: unknown) => ({ ok: false, error }),
  )

async function gitVersion({ api, call }: Session): Promise<string> {
  const { body } = await api.request('GET', '/version', call)
  const { gitVersion: found } = body as { gitVersion?: string }
  return found ?? 'of an unknown version'
}

/** The API server names the user, and stamps the answer with its own time. */
async function whoami({ api, call }: Session): Promise<Identity> {
  const { body } = await api.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    ...call,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  })
  const { metadata, status } = body as {
    metadata?: { creationTimestamp?: string }
    status?: { userInfo?: { username?: string } }
  }
  const now = Date.parse(metadata?.creationTimestamp ?? '')
  return { user: status?.userInfo?.username ?? 'unknown', now: Number.isNaN(now) ? Date.now() : now }
}
