/** Moves as their users ask for them: Migrations, their deletion, and drains. */
import { labels } from '../../../src/api/labels.ts'
import { isFinished, type Migration, migrations } from '../../../src/api/migration.ts'
import { apiVersionOf, nodes, type Pod, pods } from '../../../src/kube/resources.ts'
import { type Cluster, setRef } from './cluster.ts'
import type { Move } from './commands.ts'
import { later } from './machine-faults.ts'
import { hostnameLabel } from './nodes.ts'

/** In seconds: a Migration ends within twice this time, once it has begun. */
const limits = { unschedulableTimeoutSeconds: 20, pendingTimeoutSeconds: 40 } as const
export const moveLimitMs = 2_000 * limits.pendingTimeoutSeconds

type Of<Type extends Move['type']> = Extract<Move, { readonly type: Type }>

/** Creates a Migration of this primary. */
export function move(
  { server, nodes: machines }: Cluster,
  pod: Pod,
  { to, maxDowntimeMs }: Of<'move'>,
): void {
  const { namespace = setRef.namespace, name, uid } = pod.metadata
  const target =
    to === undefined ? undefined : to < 0 ? 'no-such-node' : machines[to % machines.length]?.machine.name
  server.create(
    migrations,
    {
      ...{ apiVersion: apiVersionOf(migrations), kind: migrations.kind },
      metadata: { name: `m${server.list(migrations).length}-${name}` },
      spec: {
        ...{ source: { name, uid }, ...limits },
        ...(target !== undefined && { addedNodeSelector: { [hostnameLabel]: target } }),
        ...(maxDowntimeMs !== undefined && { maxDowntime: `${maxDowntimeMs}ms` }),
      },
    },
    namespace,
  )
}

export const openMoves = ({ server }: Pick<Cluster, 'server'>): readonly Migration[] =>
  server.list(migrations).filter(each => !isFinished(each))

/** Deletes a Migration that has not ended. */
export function abortMove(cluster: Cluster, { move: index }: Of<'abortMove'>): void {
  const open = openMoves(cluster)
  const chosen = open[index % Math.max(open.length, 1)]
  if (chosen !== undefined)
    cluster.server.delete(migrations, chosen.metadata, { uid: chosen.metadata.uid }, undefined)
}

/** `kubectl drain` asks again and again, ms. */
const evictionsMs = 5_000

/** Cordons a node, and evicts its backups: a budget keeps its primaries. */
export function drain(cluster: Cluster, name: string, forMs: number): void {
  const { server, time, wantedGone } = cluster
  cordon(cluster, name, true)
  const until = time.now() + forMs
  const evict = () => {
    if (time.now() >= until || server.find(nodes, { name })?.spec?.unschedulable !== true) return
    for (const { metadata, spec } of server.list(pods)) {
      const isBackup = metadata.labels?.[labels.type] !== 'primary'
      if (spec?.nodeName !== name || !isBackup || metadata.deletionTimestamp !== undefined) continue
      wantedGone.add(metadata.uid)
      server.delete(pods, metadata, { uid: metadata.uid }, undefined)
    }
    later(cluster, evictionsMs, evict)
  }
  evict()
  later(cluster, forMs, () => cordon(cluster, name, false))
}

export function cordon({ server }: Pick<Cluster, 'server'>, name: string, unschedulable: boolean): void {
  if (server.find(nodes, { name }) !== undefined)
    server.patch(nodes, { name }, 'merge', { spec: { unschedulable } }, undefined)
}
