import type { TaskOf } from '../decide/task.ts'
import type { TaskContext } from './task-context.ts'

type VotersContext = Pick<TaskContext, 'sentinel' | 'fencing' | 'heartbeatKey' | 'log'>

/** Lets the sentinel exchange heartbeats with that of another node. */
export async function addPeer(
  { sentinel, fencing, heartbeatKey, log }: VotersContext,
  { peer }: TaskOf<'addPeer'>,
  signal: AbortSignal,
): Promise<void> {
  const { node, address, port, run } = peer
  const key = heartbeatKey(peer)
  if (key === undefined) {
    log.warn({ node }, 'the key in the report of a node is none, so its heartbeats do not count')
    return
  }
  await sentinel.addPeer({ name: node, address, port, run, key }, signal)
  fencing.peer(node, true)
}

export async function removePeer(
  { sentinel, fencing }: VotersContext,
  { node }: TaskOf<'removePeer'>,
  signal: AbortSignal,
): Promise<void> {
  await sentinel.removePeer(node, signal)
  fencing.peer(node, false)
}

/** Makes this node a voter of a slot. The sentinel votes from then on, whatever becomes of this agent. */
export async function vote(
  { sentinel, fencing }: VotersContext,
  { vote }: TaskOf<'vote'>,
  signal: AbortSignal,
): Promise<void> {
  await sentinel.vote(vote, signal)
  fencing.votes(vote.slot, true)
}

export async function unvote(
  { sentinel, fencing }: VotersContext,
  { slot }: TaskOf<'unvote'>,
  signal: AbortSignal,
): Promise<void> {
  await sentinel.unvote(slot, signal)
  fencing.votes(slot, false)
}
