/** Everything that `doctor` examines, read once, including the errors of parts that could not be read. */
import { type BackupPodSet, backupPodSets } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { type MigratingPod, migratingPods } from '../../api/migrating-pod.ts'
import { type Migration, migrations } from '../../api/migration.ts'
import { type NodeReport, nodeReports, parseReport } from '../../api/node-report.ts'
import { type PodMigrationJob, podMigrationJobs } from '../../api/pod-migration-job.ts'
import { listAll } from '../../kube/list-all.ts'
import type { KubeObject } from '../../kube/object.ts'
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
  type Pod,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
  type Resource,
  type Secret,
  secrets,
} from '../../kube/resources.ts'
import type { Session } from '../session.ts'
import { type OurKind, ourKinds } from './kind-names.ts'
import { asked, type Right, readRights } from './rights.ts'

export type Part<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown }

export interface Identity {
  readonly user: string
  /** Wall clock of the API server, ms. */
  readonly now: number
}

/**
 * Lists are of all namespaces if the rights allow it, else of the session's namespace.
 */
export interface Installation {
  /** Version of this program. */
  readonly version: string
  readonly server: string
  readonly kubernetes: string
  readonly identity: Part<Identity>
  readonly crds: Readonly<Record<OurKind, Part<CustomResourceDefinition>>>
  readonly operator: Part<Deployment>
  readonly leadership: Part<Lease>
  readonly wakeKey: Part<Secret>
  readonly agents: Part<DaemonSet>
  readonly nodes: Part<readonly Node[]>
  readonly reports: Part<readonly NodeReport[]>
  readonly sets: Part<readonly BackupPodSet[]>
  readonly limitRanges: Part<readonly LimitRange[]>
  readonly migrations: Part<readonly Migration[]>
  readonly migratingPods: Part<readonly MigratingPod[]>
  readonly jobs: Part<readonly PodMigrationJob[]>
  /** Primaries of sets. */
  readonly primaries: Part<readonly Pod[]>
  readonly budgets: Part<readonly PodDisruptionBudget[]>
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
  const versions = await readVersions(session, { operatorNamespace, agentNamespace })
  const name = 'understudy-operator'
  const lists = readLists(session)
  const [leadership, wakeKey, agents, identity, rights] = await Promise.all([
    part(api.get(leases, { namespace: operatorNamespace, name }, call)),
    part(api.get(secrets, { namespace: operatorNamespace, name: 'understudy-wake-key' }, call)),
    part(api.get(daemonSets, { namespace: agentNamespace, name: 'understudy-agent' }, call)),
    part(whoami(session)),
    readRights(session, asked({ namespace, operatorNamespace, agentNamespace })),
  ])
  return {
    ...{ ...versions, version, server, identity, leadership, wakeKey, agents, rights },
    ...(await lists),
  }
}

/** @throws KubeError when the API server cannot be reached or rejects the user's credentials; nothing else. */
export async function readVersions(
  session: Session,
  { operatorNamespace }: Places,
): Promise<Pick<Installation, 'kubernetes' | 'operator' | 'crds'>> {
  const { api, call } = session
  // The first call shows whether the API server answers at all; its failure is the whole answer.
  const kubernetes = await gitVersion(session)
  const crd = (plural: string) =>
    part(api.get(customResourceDefinitions, { name: `${plural}.${backupPodSets.group}` }, call))
  const [crds, operator] = await Promise.all([
    Promise.all(ourKinds.map(async plural => [plural, await crd(plural)] as const)),
    part(api.get(deployments, { namespace: operatorNamespace, name: 'understudy-operator' }, call)),
  ])
  return { kubernetes, operator, crds: byKind(crds) }
}

type Lists = Pick<
  Installation,
  | 'nodes'
  | 'reports'
  | 'sets'
  | 'limitRanges'
  | 'migrations'
  | 'migratingPods'
  | 'jobs'
  | 'primaries'
  | 'budgets'
>

async function readLists({ api, call, namespace }: Session): Promise<Lists> {
  const everywhere = <T extends KubeObject>(resource: Resource<T>, query: object = {}) =>
    part(
      listAll(api, resource, query, call)
        .catch(error => {
          if (!resource.namespaced) throw error
          return listAll(api, resource, { ...query, namespace }, call)
        })
        .then(({ objects }) => objects),
    )
  const [found, reports, sets, limits, moves, moving, jobs, primaries, budgets] = await Promise.all([
    everywhere(nodes),
    part(listAll(api, nodeReports, {}, call).then(({ objects }) => objects.map(parseReport))),
    everywhere(backupPodSets),
    everywhere(limitRanges),
    everywhere(migrations),
    everywhere(migratingPods),
    everywhere(podMigrationJobs),
    everywhere(pods, { labelSelector: `${labels.role}=primary` }),
    everywhere(podDisruptionBudgets),
  ])
  return {
    ...{ nodes: found, reports, sets, limitRanges: limits, migrations: moves },
    ...{ migratingPods: moving, jobs, primaries, budgets },
  }
}

function byKind(all: readonly (readonly [OurKind, Part<CustomResourceDefinition>])[]): Installation['crds'] {
  const find = (plural: OurKind): Part<CustomResourceDefinition> =>
    all.find(([kind]) => kind === plural)?.[1] ?? { ok: false, error: new Error('not read') }
  return {
    backuppodsets: find('backuppodsets'),
    nodereports: find('nodereports'),
    migrations: find('migrations'),
    migratingpods: find('migratingpods'),
    podmigrationjobs: find('podmigrationjobs'),
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
