/** The tasks that keep a slot from having two primaries: see docs/adr/0128-fencing.md. */
import { type Electorate, nodeVoter, partsOf } from '../../api/fence.ts'
import { hostOf } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { reportOf } from '../../slot/decide/knowledge.ts'
import { idsOf, isDead, isFor } from '../observe/pod-facts.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import type { Slot } from './slot-facts.ts'
import type { PeerNode, Task } from './task.ts'

/** Whether the sentinel of this node is one of the slot's voters. */
const isVoter = ({ node, fence: { run } }: Snapshot, { fence }: SlotLease): boolean =>
  run !== undefined && fence !== undefined && allVoters(fence).includes(nodeVoter(node, run))

const allVoters = ({ voters, next = [] }: Electorate) => [...voters, ...next]

const hasVoters = ({ fence }: SlotLease): boolean => fence !== undefined && fence.version > 0

/** A primary on stage serves only while its voters answer. Both tasks of a pod have one key: never both at a time. */
export function ofGuarded(snapshot: Snapshot, { lease, name }: Slot, pod: PodView): Task[] {
  const { sentinel, fence } = snapshot
  if (fence.run === undefined || lease.fence === undefined || !hasVoters(lease)) return []
  const { term, version } = lease.fence
  return [
    {
      ...{ type: 'guard', key: guardKey(pod), pod, slot: name, fence: lease.fence },
      version: `${sentinel} ${fence.run} ${name} ${term}.${version} ${idsOf(pod)}`,
    },
  ]
}

/** The operator would take a voter that errs, and an agent that has nothing to write, for a node that is lost. */
export function ofContradicted(snapshot: Snapshot, { lease }: Slot, pod: PodView): Task[] {
  const { sentinel, reports } = snapshot
  const { fence } = lease
  if (fence === undefined) return []
  const says = [...reports].flatMap(([node, status]) => {
    const { silentTerm = 0, suspectTerm = 0 } = reportOf(status, lease) ?? {}
    if (silentTerm >= fence.term) return [`${node} silent`]
    return suspectTerm >= fence.term ? [`${node} suspect`] : []
  })
  if (says.length === 0) return []
  const version = `${sentinel} ${fence.term} ${says.sort()}`
  return [{ type: 'contradict', key: `contradict/${pod.uid}`, version, pod, fence }]
}

const guardKey = ({ uid }: PodView): string => `guard/${uid}`

/**
 * Guarded pods that need no voters any more. A pod whose slot went to another pod stays guarded until its processes have
 * ended: it would resume beside its successor.
 */
export function ofLeftGuarded({ sentinel, dead, fence, pods, slots }: Snapshot): Task[] {
  return pods.flatMap((pod): Task[] => {
    if (!fence.guarded.has(pod.uid)) return []
    const about = { type: 'unguard', key: guardKey(pod), pod } as const
    const held = slots.find(({ holder }) => holder.uid === pod.uid)
    // No app may run in a backup that no Lease names.
    const isBackup = held === undefined && pod.understudy && /^(hot|cold)backup$/.test(pod.kind)
    // A pod stays as it is when its set keeps no memory any more; then its slot has no Lease.
    const isAnothers = held === undefined && slots.some(lease => isFor(lease, pod) && lease.name === pod.slot)
    if (isBackup || isDead({ dead }, pod, held && slotName(held))) {
      const isLoser = !isBackup && (isAnothers || pod.kind === 'retired')
      return [{ ...about, version: `${sentinel} over`, of: undefined, isLoser }]
    }
    // Another pod has taken the place of a retired one.
    const isOver = isAnothers || pod.slot === undefined || pod.kind === 'retired'
    if (held === undefined ? isOver : hasVoters(held)) return []
    const of = { namespace: pod.namespace, name: held?.name ?? pod.slot ?? '' }
    return [{ ...about, version: `${sentinel} ${of.name} ${held?.fence?.term ?? ''}`, of }]
  })
}

/** The sentinel exchanges heartbeats with the voters of primaries here, and with the nodes of primaries it votes on. */
export function ofPeers(snapshot: Snapshot): Task[] {
  const { sentinel, fence, reports, node: here, pods } = snapshot
  if (fence.run === undefined) return []
  const own = new Set(pods.map(({ uid }) => uid))
  const needed = new Set<string>()
  for (const lease of snapshot.slots) {
    if (lease.fence === undefined) continue
    if (own.has(lease.holder.uid)) for (const voter of allVoters(lease.fence)) needed.add(partsOf(voter).node)
    if (lease.node !== undefined && isVoter(snapshot, lease)) needed.add(lease.node)
  }
  needed.delete(here)
  const peers = [...needed].flatMap((node): readonly PeerNode[] => {
    const status = reports.get(node)
    return status?.heartbeats === undefined
      ? []
      : [{ ...status.heartbeats, node, address: hostOf(status), fingerprint: status.fingerprint }]
  })
  const isLeft = (node: string) => !needed.has(node)
  return [
    ...peers.map((peer): Task => {
      const { node, address, port, run, key } = peer
      const version = `${sentinel} ${fence.run} ${address} ${port} ${run} ${key}`
      return { type: 'addPeer', key: peerKey(node), version, peer }
    }),
    ...[...fence.peers].filter(isLeft).map((node): Task => {
      return { type: 'removePeer', key: peerKey(node), version: `no ${sentinel}`, node }
    }),
  ]
}

const peerKey = (node: string): string => `peer/${node}`

export function ofVotes(snapshot: Snapshot): Task[] {
  const { sentinel, fence, reports, node: here } = snapshot
  if (fence.run === undefined) return []
  const mine = snapshot.slots.filter(lease => isVoter(snapshot, lease))
  const slots = new Set(mine.map(slotName))
  return [
    ...mine.flatMap((lease): Task[] => {
      const { node, fence: asked } = lease
      const run = node === undefined ? undefined : reports.get(node)?.heartbeats?.run
      if (node === undefined || node === here || run === undefined || asked === undefined) return []
      const { term, timeoutMs, isRevoked: isDenied } = asked
      const slot = slotName(lease)
      const version = `${sentinel} ${fence.run} ${term} ${timeoutMs} ${node} ${run} ${isDenied}`
      return [
        { type: 'vote', key: voteKey(slot), version, vote: { slot, term, timeoutMs, node, run, isDenied } },
      ]
    }),
    ...[...fence.votes]
      .filter(slot => !slots.has(slot))
      .map((slot): Task => ({ type: 'unvote', key: voteKey(slot), version: `no ${sentinel}`, slot })),
  ]
}

const voteKey = (slot: string): string => `vote/${slot}`
