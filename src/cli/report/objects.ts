import { backupPodSets } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { migratingPods } from '../../api/migrating-pod.ts'
import { migrations } from '../../api/migration.ts'
import { nodeReports } from '../../api/node-report.ts'
import { podMigrationJobs } from '../../api/pod-migration-job.ts'
import { isKubeError } from '../../kube/errors.ts'
import { listAll } from '../../kube/list-all.ts'
import type { KubeObject } from '../../kube/object.ts'
import {
  customResourceDefinitions,
  daemonSets,
  deployments,
  events,
  leases,
  nodes,
  pods,
  type Resource,
} from '../../kube/resources.ts'
import type { ownSchemas } from '../doctor/doctor.ts'
import type { Places } from '../doctor/installation.ts'
import { ourKinds } from '../doctor/kind-names.ts'
import type { Session } from '../session.ts'
import type { Collecting } from './collecting.ts'
import { kept, type Shape } from './redact.ts'
import * as shapes from './shapes.ts'

export interface Part {
  /** Path in the bundle, without its ending. */
  readonly name: string
  readonly items: readonly unknown[]
}

/** A kind of object in the bundle. */
interface Wanted {
  readonly name: string
  readonly resource: Resource<KubeObject>
  readonly shape: Shape
  readonly query?: { readonly namespace?: string; readonly labelSelector?: string }
}

/** The most namespaces whose events are read. */
const mostNamespaces = 50

/** Reads the objects of the bundle, each with the fields of its shape only. */
export async function readObjects(
  session: Session,
  places: Places,
  schemas: Awaited<ReturnType<typeof ownSchemas>>,
  { fail, of }: Collecting,
): Promise<readonly Part[]> {
  const wanted = kindsOf(places, schemas)
  const total = wanted.length + 2
  let done = 0
  const counted = <T>(part: T): T => {
    of(++done, total)
    return part
  }
  const found = await Promise.all(
    wanted.map(async ({ name, resource, shape, query }) => {
      const objects = (await everywhere(session, resource, query).catch(fail(name))) ?? []
      return counted({ name, objects, shape })
    }),
  )
  const definitions = await Promise.all(
    ourKinds.map(plural =>
      session.api
        .get(customResourceDefinitions, { name: `${plural}.${backupPodSets.group}` }, session.call)
        .catch(fail(`kind ${plural}`)),
    ),
  )
  counted(undefined)
  const all = found.flatMap(({ objects }) => objects)
  const about = (await eventsAbout(session, all, places).catch(fail('events'))) ?? []
  counted(undefined)
  return [
    ...found.map(({ name, objects, shape }) => ({
      name: `objects/${name}`,
      items: objects.map(each => kept(each, shape)),
    })),
    { name: 'objects/kinds', items: definitions.map(each => kept(each, shapes.definition)) },
    { name: 'events', items: about },
  ]
}

function kindsOf(
  { operatorNamespace, agentNamespace }: Places,
  schemas: Awaited<ReturnType<typeof ownSchemas>>,
): readonly Wanted[] {
  const statusOf = (kind: keyof typeof schemas) => schemas[kind].properties?.['status']
  const ofSets = { labelSelector: labels.set }
  const installation = [operatorNamespace, agentNamespace].map(namespace => ({ namespace }))
  return [
    { name: 'backuppodsets', resource: backupPodSets, shape: shapes.owner(statusOf('backuppodsets')) },
    { name: 'migratingpods', resource: migratingPods, shape: shapes.owner(statusOf('migratingpods')) },
    { name: 'migrations', resource: migrations, shape: shapes.migration(statusOf('migrations')) },
    { name: 'nodereports', resource: nodeReports, shape: shapes.report(statusOf('nodereports')) },
    { name: 'podmigrationjobs', resource: podMigrationJobs, shape: shapes.job(statusOf('podmigrationjobs')) },
    { name: 'pods', resource: pods, shape: shapes.pod, query: ofSets },
    { name: 'leases', resource: leases, shape: shapes.lease, query: ofSets },
    { name: 'nodes', resource: nodes, shape: shapes.node },
    ...installation.flatMap(query => [
      { name: `installation/${query.namespace}/pods`, resource: pods, shape: shapes.pod, query },
      { name: `installation/${query.namespace}/leases`, resource: leases, shape: shapes.lease, query },
      {
        name: `installation/${query.namespace}/deployments`,
        resource: deployments,
        shape: shapes.workload,
        query,
      },
      {
        name: `installation/${query.namespace}/daemonsets`,
        resource: daemonSets,
        shape: shapes.workload,
        query,
      },
    ]),
  ]
}

/** Lists all namespaces if the rights allow it, else that of the session. */
async function everywhere<T extends KubeObject>(
  { api, call, namespace }: Session,
  resource: Resource<T>,
  query: Wanted['query'] = {},
): Promise<readonly T[]> {
  try {
    return (await listAll(api, resource, query, call)).objects
  } catch (error) {
    if (!isKubeError(error, 'Forbidden') || !resource.namespaced || query.namespace !== undefined) throw error
    return (await listAll(api, resource, { ...query, namespace }, call)).objects
  }
}

/** Events about these objects. Only our own programs write texts without data of users. */
async function eventsAbout(
  { api, call }: Session,
  objects: readonly KubeObject[],
  { operatorNamespace, agentNamespace }: Places,
): Promise<readonly unknown[]> {
  const uids = new Set(objects.map(({ metadata }) => metadata.uid))
  const own = objects.flatMap(({ metadata }) => metadata.namespace ?? [])
  const namespaces = [...new Set([operatorNamespace, agentNamespace, 'default', ...own])].slice(
    0,
    mostNamespaces,
  )
  const found: unknown[] = []
  for (const namespace of namespaces)
    for (const event of (await listAll(api, events, { namespace }, call)).objects) {
      const { regarding, reportingController = '' } = event
      const isOurs = /^(backup\.example\.com\/)?understudy-(operator|agent)$/.test(reportingController)
      if (!isOurs && !uids.has(regarding?.uid ?? '')) continue
      found.push(kept(event, isOurs ? shapes.ownEvent : shapes.event))
    }
  return found
}
