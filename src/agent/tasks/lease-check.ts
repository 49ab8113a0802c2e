import { AgentError } from '../../api/agent-errors.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { isKubeError } from '../../kube/errors.ts'
import { stepsBehind, type Told } from '../../slot/decide/age.ts'
import { toldOf } from '../observe/generations.ts'
import type { TaskContext } from './task-context.ts'

export type LeaseCheckContext = Pick<TaskContext, 'inquiry' | 'grants' | 'clock' | 'log'>

/**
 * Rejects a generation that is too old by the Lease: another node could restore newer memory, which would be lost. The
 * Lease says so until the operator has no other node left. That may have changed since this promotion began, so the API
 * server decides.
 *
 * @throws AgentError NewerElsewhere, KubeError.
 */
export async function insist(
  { inquiry }: LeaseCheckContext,
  lease: SlotLease,
  stored: Stored,
  signal: AbortSignal,
): Promise<void> {
  if (!isTooOld(stored, lease.atLeast, lease)) return
  const now = await inquiry.lease(lease, signal)
  // The API server does not know yet that a grant was used.
  const { atLeast } = now !== undefined && now.epoch < lease.epoch ? lease : (now ?? {})
  if (isTooOld(stored, atLeast, lease)) throw newerElsewhere(stored)
}

export const isTooOld = (
  { manifest }: Pick<Stored, 'manifest'>,
  atLeast: SlotLease['atLeast'],
  lease: SlotLease,
): boolean => isToldTooOld(toldOf(manifest), atLeast, lease)

export const isToldTooOld = (memory: Told, atLeast: SlotLease['atLeast'], lease: SlotLease): boolean =>
  atLeast !== undefined && stepsBehind(memory, atLeast, intervalOf(lease)) > 0

/** While the policy is unknown: as if only the newest memory would do. */
export const intervalOf = ({ policy }: SlotLease): number => policy?.intervalMs ?? 0

export const newerElsewhere = ({ manifest }: Stored) =>
  new AgentError('NewerElsewhere', `this node has generation ${manifest.generation}`)

/** Pause before the next request to an API server that has not answered, ms. */
export const confirmAgainMs = 200

/**
 * Makes sure, by the API server, that the slot still belongs to this pod and it is not to end, and returns its Lease; asks until it gets an
 * answer. A restore takes seconds and a cache can be stale: another pod may have the slot and run by now. This is the
 * last moment to detect that.
 *
 * A grant that was accepted a short while ago counts without a question: the operator calls no other pod before this agent
 * has said that the grant is over. Later the API server decides, because the node of this agent may have been taken for lost.
 *
 * @param isGranted as `tellResuming` returns it.
 * @throws AgentError NotCalled, the signal's reason.
 */
export async function confirm(
  { inquiry, grants, clock, log }: LeaseCheckContext,
  lease: SlotLease,
  isGranted: boolean,
  signal: AbortSignal,
): Promise<SlotLease> {
  if (isGranted && grants.isFresh(lease)) return lease
  for (let isFirst = true; ; isFirst = false) {
    try {
      const now = await inquiry.lease(lease, signal)
      const isUnrecorded = now?.incarnation === lease.incarnation && now.epoch + 1 === lease.epoch
      if (isUnrecorded && isGranted) return lease
      const isCalled =
        now?.holder.uid === lease.holder.uid &&
        now.incarnation === lease.incarnation &&
        now.epoch === lease.epoch &&
        now.ending !== lease.holder.uid
      if (!isCalled) throw new AgentError('NotCalled', slotName(lease))
      return now
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error)) throw error
      if (isFirst) log.warn({ err: error, slot: slotName(lease) }, 'cannot read the Lease of the slot')
      await clock.sleep(confirmAgainMs, signal)
    }
  }
}
