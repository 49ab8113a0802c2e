/** NotServed: a set differs from its spec although every fault has ended. */
import type { BackupPodSet } from '../../../../src/api/backuppodset.ts'
import { labels } from '../../../../src/api/labels.ts'
import { leases, type Pod, pods } from '../../../../src/kube/resources.ts'
import { answering } from '../world.ts'
import { type Ground, setOf } from './ground.ts'

/** Returns the differences from the set's spec; empty if every slot is served. */
export function differences(ground: Ground): readonly string[] {
  const { cluster } = ground
  const set = setOf(cluster)
  if (set === undefined) return []
  const mine = cluster.server
    .list(pods)
    .filter(
      ({ metadata }) =>
        metadata.ownerReferences?.[0]?.uid === set.metadata.uid && metadata.deletionTimestamp === undefined,
    )
  return [...wrongNumbers(set, mine), ...wrongPrimaries(ground, set, mine), ...wrongConditions(set)]
}

function wrongNumbers({ spec }: BackupPodSet, mine: readonly Pod[]): readonly string[] {
  const { replicas = 1, hotBackups = 0, coldBackups = 0 } = spec
  const count = (type: string) =>
    mine.filter(({ metadata }) => metadata.labels?.[labels.type] === type).length
  const counts = [count('primary'), count('hotbackup'), count('coldbackup')].join('/')
  const wanted = [replicas, hotBackups, coldBackups].join('/')
  return counts === wanted ? [] : [`${counts} pods where ${wanted} are wanted`]
}

function wrongPrimaries(
  { cluster, leaseOf }: Ground,
  set: BackupPodSet,
  mine: readonly Pod[],
): readonly string[] {
  const faults: string[] = []
  const machines = cluster.nodes.map(({ machine }) => machine)
  const slots = cluster.server.list(leases).flatMap(each => leaseOf(each) ?? [])
  const held = new Map<string, string>()
  for (const pod of mine) {
    if (pod.metadata.labels?.[labels.type] !== 'primary') continue
    const { name, uid } = pod.metadata
    const slot = pod.metadata.labels?.[labels.slot] ?? '-'
    const lease = slots.find(each => String(each.slot) === slot)
    if (held.has(slot)) faults.push(`slot ${slot} is ${held.get(slot)}'s and ${name}'s`)
    held.set(slot, name)
    if (set.spec.checkpoint !== undefined && lease?.holder.uid !== uid)
      faults.push(
        `the Lease of slot ${slot} names ${lease?.holder.name ?? 'nobody'}, and ${name} is its primary`,
      )
    const answer = answering(machines, pod.status?.podIP ?? '', cluster.time.now())
    if (answer?.pod.uid !== uid)
      faults.push(`who asks ${name} for slot ${slot} is answered by ${answer?.pod.name ?? 'nobody'}`)
    const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status
    if (ready !== 'True') faults.push(`${name} of slot ${slot} is not ready`)
  }
  return faults
}

function wrongConditions({ spec, status }: BackupPodSet): readonly string[] {
  const isProtected = (spec.hotBackups ?? 0) > 0 && spec.checkpoint !== undefined
  return ['Ready', ...(isProtected ? ['CheckpointReady'] : [])].flatMap(type => {
    const told = status?.conditions?.find(each => each.type === type)
    if (told?.status === 'True') return []
    return [`the set says ${type}=${told?.status} ${told?.reason}: ${told?.message}`]
  })
}
