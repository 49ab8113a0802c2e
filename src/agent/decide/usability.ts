import { type SlotReport, unprovenReason } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { fits, isFor, isFreeUnderstudy } from '../observe/pod-facts.ts'
import type { Kept, Snapshot } from '../observe/snapshot.ts'
import { unfitImages, unfitNode } from './unfit.ts'

interface Usability {
  readonly usable?: SlotReport['usable']
  readonly understudyUid?: string
  readonly reason?: string
  readonly message?: string
}

/** Returns whether and how this node could restore and resume a slot's memory. */
export function usabilityOf(snapshot: Snapshot, lease: SlotLease): Usability {
  const name = slotName(lease)
  const kept = snapshot.kept.get(name)
  if (kept === undefined) return { reason: 'NoGeneration', message: 'no generation has arrived yet' }
  const unfit = unfitNode(snapshot, kept)
  if (unfit !== undefined) return unfit
  if (!snapshot.able)
    return {
      reason: 'NodeNotReady',
      message:
        'a copy is here, but the node cannot restore it while a check fails; its NodeReport names the check',
    }
  const primaries = new Set(snapshot.slots.map(({ holder }) => holder.uid))
  const free = snapshot.pods.filter(
    pod => isFor(lease, pod) && isFreeUnderstudy(snapshot, pod) && !primaries.has(pod.uid),
  )
  const ofTemplate = free.filter(pod => pod.restoreHash === kept.restoreHash)
  const [first] = ofTemplate
  if (first === undefined)
    return {
      // This node may never have restored memory of this kind, and has no understudy to try it in.
      usable: 'Cold',
      ...(free.length === 0
        ? { reason: 'NoUnderstudy', message: 'no understudy of the set waits on this node' }
        : {
            reason: 'TemplateChanged',
            message: 'the memory is from another template than the understudies on this node',
          }),
    }
  const understudies = ofTemplate.filter(pod => unfitImages(pod, kept) === undefined)
  if (understudies.length === 0) return unfitImages(first, kept) ?? {}
  const frozen = understudies.find(({ uid }) => {
    const stage = snapshot.stages.get(uid)
    return stage?.state === 'Frozen' && stage.slot === name
  })
  if (frozen !== undefined) return { usable: 'Frozen', understudyUid: frozen.uid }
  if (!snapshot.proven.has(kept.restoreHash))
    return { reason: unprovenReason, message: 'this node has not restored memory of this kind yet' }
  const heir = understudies.find(({ uid }) => uid === lease.heir?.uid)
  if (lease.policy?.mode === 'Frozen' && heir !== undefined && !fits(heir, kept))
    return {
      usable: 'Staged',
      reason: 'UnderstudyTooSmall',
      message:
        'the memory and 10 % more do not fit the memory limit of the understudy, so it stays Staged; raise the limit of the container',
    }
  return { usable: 'Staged' }
}

/**
 * Returns the newest generation here if the successor of a handover could continue with it at once. Memory that is to be frozen must
 * be frozen: after the switch a failure could not be taken back any more. Undefined: it could not, or the Lease names no successor here.
 */
export function successorHas(snapshot: Snapshot, lease: SlotLease): Kept | undefined {
  const name = slotName(lease)
  const kept = snapshot.kept.get(name)
  const successor = snapshot.pods.find(({ uid }) => uid === lease.handover)
  if (lease.policy === undefined || kept === undefined || successor === undefined) return undefined
  if (!isFreeUnderstudy(snapshot, successor) || successor.restoreHash !== kept.restoreHash) return undefined
  if (lease.policy.mode !== 'Frozen' || lease.heir?.uid !== successor.uid || !fits(successor, kept))
    return snapshot.proven.has(kept.restoreHash) ? kept : undefined
  const stage = snapshot.stages.get(successor.uid)
  const isFrozen = stage?.slot === name && stage.generation === kept.generation && stage.epoch === kept.epoch
  return isFrozen ? kept : undefined
}
