import { backupPodSets } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { migratingPods } from '../../api/migrating-pod.ts'
import { nodeReports } from '../../api/node-report.ts'
import type { KubeObject } from '../../kube/object.ts'
import { namespaces, nodes, pods, type Resource } from '../../kube/resources.ts'
import type { Session } from '../session.ts'
import type { Candidate, CommandLine, Source } from './want.ts'

/** The most names that are read of a cluster: a person chooses among some. */
const mostNames = 500

/** Returns names of the cluster. @throws KubeError. */
export async function namesOf(
  { api, call, namespace }: Pick<Session, 'api' | 'call' | 'namespace'>,
  of: Exclude<Source, 'context'>,
  { args }: Pick<CommandLine, 'args'>,
): Promise<readonly Candidate[]> {
  const list = async <T extends KubeObject>(
    resource: Resource<T>,
    query: object = {},
  ): Promise<readonly T[]> =>
    (
      await api.list(
        resource,
        { ...(resource.namespaced && { namespace }), ...query, limit: mostNames },
        call,
      )
    ).items
  const words = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => ({ word: metadata.name }))
  switch (of) {
    case 'set':
      return words(await list(backupPodSets))
    case 'owner': {
      const all = await Promise.all([list(backupPodSets), list(migratingPods).catch(() => [])])
      return [...new Set(all.flat().map(({ metadata }) => metadata.name))].map(word => ({ word }))
    }
    case 'slot': {
      const set = await api.get(backupPodSets, { namespace, name: args[0] ?? '' }, call)
      return (set.status?.slots ?? []).map(({ slot, pod, node }) => ({
        word: String(slot),
        about: node === undefined ? pod : `${pod} on ${node}`,
      }))
    }
    case 'primary':
      return words(await list(pods, { labelSelector: `${labels.role}=primary` }))
    case 'node':
      // Users of a namespace may read the reports, if anything.
      return words(await list(nodes).catch(() => list(nodeReports)))
    case 'namespace':
      return words(await list(namespaces))
  }
}
