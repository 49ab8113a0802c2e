import { isAgentError } from '../../api/agent-errors.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { TaskOf } from '../decide/task.ts'
import type { Elsewhere, Peer } from '../observe/elsewhere.ts'
import { generationsOf } from '../observe/generations.ts'
import type { Progress } from '../state/progress.ts'
import type { FetchContext } from './fetch.ts'
import { fetchNewest } from './fetch.ts'

interface ReplicateContext extends FetchContext {
  readonly store: Pick<GenerationStore, 'list' | 'prune'>
  readonly progress: Pick<Progress, 'succeeded'>
}

/** Fetches each new generation of a slot from its source. */
export async function replicate(
  work: ReplicateContext,
  { lease, policy, source, others, missed }: TaskOf<'replicate'>,
  signal: AbortSignal,
  succeeded: () => void,
): Promise<void> {
  const { namespace, name, incarnation } = lease
  const key = { namespace, name, incarnation }
  const keep = async () => {
    // The slot's primary may be on this node by now. Its task reports once why nothing is saved, and a success would hide that.
    signal.throwIfAborted()
    work.progress.succeeded(slotName(key))
    await work.store.prune(key, policy.keep)
    succeeded()
  }
  // A former primary may keep one more than a holder does, and leave no room for the next.
  if (generationsOf(work.store, key).length > policy.keep) await work.store.prune(key, policy.keep)
  // The source answers but makes no new generation: a pull from it would wait for ever.
  if (missed !== undefined && (await fetchNewest(work, lease, others, signal)) !== undefined) await keep()
  for (;;) {
    const stored = await pull(work, lease, source, others, signal)
    work.metrics.received({ bytes: stored.manifest.bytes, pipelineSeconds: stored.pipelineMs / 1000 })
    work.announce(key)
    await keep()
  }
}

/** Pulls from the source; if the source is gone, from any node with a newer generation than this node's. */
async function pull(
  work: ReplicateContext,
  lease: SlotLease,
  source: Peer,
  others: readonly Elsewhere[],
  signal: AbortSignal,
): Promise<Stored> {
  const { namespace, name, incarnation } = lease
  try {
    return await work.peers.pull({ namespace, name, incarnation }, source, lease.epoch, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (!isAgentError(error, 'PeerUnreachable', 'PeerSilent')) throw error
    const stored = await fetchNewest(work, lease, others, signal)
    if (stored === undefined) throw error
    return stored
  }
}
