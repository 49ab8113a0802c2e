/**
 * MoveLost: a Migration has succeeded, and the pod resumed without the last moments of its source. MoveLies: its status says what
 * is not so. MoveHangs: it does not end.
 */
import { isFinished, type Migration, migrations, outcomeOf } from '../../../../src/api/migration.ts'
import { leases, resourceName } from '../../../../src/kube/resources.ts'
import { openMoves } from '../moves.ts'
import type { Memory } from '../world.ts'
import type { Ground } from './ground.ts'
import { running } from './running.ts'

const lifeIn = (uid: string, { genesis }: Memory) => `${uid} ${genesis}`

export function moves({ cluster, violate, leaseOf }: Ground): {
  readonly look: () => void
  readonly unmoved: () => readonly string[]
  /** Returns how many have ended in which way. */
  readonly ends: () => Readonly<Record<string, number>>
  readonly atEnd: () => void
} {
  const { time, server, thaws } = cluster
  /** The last moment of each life in each pod, as far as it was seen to run, ms. A kubelet may start another life in the pod. */
  const lived = new Map<string, number>()
  /** The memory with which the app of each pod first resumed, by the pod's uid. */
  const began = new Map<string, Memory>()
  let thawsSeen = 0
  const noteThaws = () => {
    for (const { pod } of thaws.slice(thawsSeen)) {
      const memory = pod.containers.find(({ name }) => name === 'app')?.app?.memory
      if (memory !== undefined && !began.has(pod.uid)) began.set(pod.uid, memory)
    }
    thawsSeen = thaws.length
  }
  const look = () => {
    noteThaws()
    for (const { pod, container, app } of running(cluster))
      if (container === 'app') lived.set(lifeIn(pod.uid, app.memory), time.now())
  }
  const succeeded = ({ metadata: { name, namespace = '' }, status = {} }: Migration) => {
    const { source, target } = status
    if (source === undefined || target === undefined)
      return violate('MoveLies', name, `${name} has succeeded without a source or a target`)
    const lease = server
      .list(leases)
      .map(leaseOf)
      .find(each => each?.namespace === namespace && each.group === source.set && each.slot === source.slot)
    if (lease?.holder.uid === source.uid)
      violate('MoveLies', name, `${name} has succeeded, and its source still has slot ${source.slot}`)
    if (target.node === source.node)
      violate('MoveLies', name, `${name} has moved ${source.uid} to the node that it was on`)
    noteThaws()
    const from = began.get(target.uid)
    if (from === undefined)
      return violate('MoveLies', name, `${name} has succeeded, and ${target.name} has not resumed`)
    const last = lived.get(lifeIn(source.uid, from))
    if (last !== undefined && from.until < last)
      violate(
        'MoveLost',
        name,
        `${name}: ${target.name} resumed ${Math.round(last - from.until)} ms behind its source`,
      )
  }
  const ends = new Map<string, number>()
  server.subscribe((resource, { type, object, old }) => {
    if (resource !== resourceName(migrations)) return
    const migration = object as Migration
    const end = endOf(type, migration, old as Migration | undefined)
    if (end === undefined) return
    ends.set(end, (ends.get(end) ?? 0) + 1)
    if (end === 'succeeded') succeeded(migration)
  })
  const unmoved = () => openMoves(cluster).map(({ metadata: { name } }) => name)
  return {
    look,
    unmoved,
    ends: () => Object.fromEntries(ends),
    atEnd() {
      for (const name of unmoved()) violate('MoveHangs', name, `Migration ${name} does not end`)
    },
  }
}

/** Undefined: it has not ended, or had ended before. */
function endOf(type: string, migration: Migration, old: Migration | undefined): string | undefined {
  if (type === 'DELETED')
    return isFinished(migration) ? undefined : `called off in ${migration.status?.phase ?? 'Pending'}`
  if (!isFinished(migration) || old === undefined || isFinished(old)) return undefined
  const { status, reason } = outcomeOf(migration) ?? {}
  return status === 'True' ? 'succeeded' : `failed as ${reason}`
}
