/** A set with `suspend`: its primaries are saved up to their last instruction and leave, and their memory stays. */
import { reasons } from '../../api/reasons.ts'
import { isFencedOff, isOutOfReach } from '../../slot/decide/fence/verdict.ts'
import { mayBeginAnew } from '../../slot/decide/grant.ts'
import { savedOn, whyNoReceiver } from '../../slot/decide/handover.ts'
import { isGone } from '../../slot/decide/knowledge.ts'
import type { MemoryView, SlotMemory, Word } from '../../slot/decide/memory-view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { untilEndTold } from './deaths.ts'
import { handoverOverAt } from './losses.ts'
import { movesOf } from './moves.ts'
import { primariesByLease, untimelySuccessors } from './primaries-by-lease.ts'
import { isNeverSaved, isRetained } from './retention.ts'

export interface Suspension {
  /** Primaries that leave now: each is saved up to its last instruction, or does not run any more. */
  readonly leaving: readonly PodView[]
  /** Slots whose primaries are to stop, and to save their last generation. */
  readonly saving: ReadonlySet<number>
  /** Slots that get no grant: no heir may resume what is to be kept. */
  readonly ungranted: ReadonlySet<number>
  /** Primaries that still run, with the reason, by slot. */
  readonly running: readonly Running[]
}

export interface Running extends Word {
  readonly pod: PodView
}

type Step = Word | 'leaves' | 'saves'

/** Returns how far each primary of a set with memory is from its end. Follows from the snapshot alone: every leader continues. */
export function suspensionOf(s: Snapshot, memory: MemoryView): Suspension {
  const { primaries } = primariesByLease(s, memory, untimelySuccessors(s, memory))
  const moving = movesOf(s)
  const steps = [...primaries]
    .sort((a, b) => (a.slot ?? -1) - (b.slot ?? -1) || (a.uid < b.uid ? -1 : 1))
    .map(pod => ({ pod, step: stepOf(s, memory, pod, moving.has(pod.slot ?? -1)) }))
  // One save at a time on each node: a primary that waits for the turn of another one would be stopped for nothing.
  const wanted = steps.filter(({ step }) => step === 'saves').map(({ pod }) => pod)
  const asked = (pod: PodView) => memory.slots.get(pod.slot ?? -1)?.lease.handover === pod.uid
  const firsts = [...Map.groupBy(wanted, ({ node }) => node).values()].flatMap(
    pods => pods.find(asked) ?? pods[0] ?? [],
  )
  return {
    leaving: steps.filter(({ step }) => step === 'leaves').map(({ pod }) => pod),
    saving: new Set(firsts.flatMap(({ slot }) => slot ?? [])),
    ungranted: new Set(steps.flatMap(({ pod, step }) => (step === 'leaves' ? [] : (pod.slot ?? [])))),
    running: steps.flatMap(({ pod, step }): Running[] =>
      step === 'leaves' ? [] : [{ pod, ...(step === 'saves' ? savingWord : step) }],
    ),
  }
}

const savingWord: Word = {
  reason: reasons.saving,
  message: 'it is being stopped, and saved up to its last instruction',
}

/** If it has ended with success, its work is done, and no memory is to be kept. */
const untoldWord: Word = {
  reason: reasons.suspending,
  message: 'its app has ended, and the kubelet is about to tell whether with success',
}

/** Returns what is to be done about one primary; a reason: it runs on, and nothing is lost. */
function stepOf(s: Snapshot, memory: MemoryView, pod: PodView, isMoving: boolean): Step {
  const slot = memory.slots.get(pod.slot ?? -1)
  if (slot?.lease.retainedSince === undefined && untilEndTold(s, pod) > 0) return untoldWord
  // It cannot start, for example, and there is no memory to lose.
  if (!pod.served && !pod.waking && !pod.stage?.promoting && isNeverSaved(slot)) return 'leaves'
  if (slot === undefined || slot.lease.holder.uid !== pod.uid)
    return { reason: reasons.notSaved, message: 'no Lease names it yet, so no agent saves it' }
  if (isRetained(slot)) return 'leaves'
  const isAsked = slot.lease.handover === pod.uid
  // A Migration that has begun comes to its end: its primary may be stopped for it already.
  if (isMoving && !isAsked)
    return {
      reason: reasons.moving,
      message: 'a Migration moves it: it is suspended after that, or delete the Migration',
    }
  if (pod.waking || pod.stage?.promoting)
    return { reason: reasons.takingOver, message: 'it has been called to its slot and does not serve yet' }
  if (!mayBeginAnew(slot))
    return {
      reason: reasons.grantOutstanding,
      message: 'a hot backup may take its slot by itself: the agents are asked to end that',
    }
  const hasEnded = pod.stage?.died === true || isFencedOff(s, slot)
  if (hasEnded && !isGone(slot)) return 'leaves'
  if (savedOn(slot, s).length > 0) return 'leaves'
  return obstacleTo(s, memory, pod, slot) ?? 'saves'
}

/** Returns why the primary cannot be saved now. */
function obstacleTo(s: Snapshot, memory: MemoryView, pod: PodView, slot: SlotMemory): Word | undefined {
  const { source, lease } = slot
  if (memory.refused !== undefined) return memory.refused
  if (source?.reason !== undefined)
    return { reason: source.reason, message: source.message ?? 'its memory cannot be saved' }
  if (source?.handoverPaused === true)
    return {
      reason: reasons.savePaused,
      message:
        'it was stopped and not saved in time; its agent lets it run for a while before it tries again',
    }
  const node = memory.nodes.get(lease.node ?? '')
  if (node?.ready !== true || isOutOfReach(s, slot))
    return {
      reason: reasons.nodeNotReady,
      message: `node ${lease.node ?? 'unknown'} cannot save it: ${node?.problem ?? 'its agent is silent'}`,
    }
  const receiver = withoutReceiver(slot)
  if (receiver !== undefined) return receiver
  const isAsked = lease.handover === pod.uid
  if (isAsked && s.now >= (handoverOverAt(s, pod) ?? Number.POSITIVE_INFINITY))
    return {
      reason: reasons.savePaused,
      message: 'it was stopped and not saved in time, and has to answer first',
    }
  // An app that does not answer may be broken: the rules of failures come first.
  if (!pod.ready && !isAsked)
    return {
      reason: reasons.notAnswering,
      message: `it is not Ready, and only a healthy memory is worth keeping; to end it with the state that was saved last, run kubectl delete pod ${pod.name}`,
    }
  return undefined
}

/** Returns why no other node could have its last generation: its clients would wait until the stop is over, for nothing. */
function withoutReceiver(slot: SlotMemory): Word | undefined {
  const { lease } = slot
  const others = lease.holders.filter(node => node !== lease.node)
  if (lease.unsaved === true || others.length === 0)
    return {
      reason: reasons.noOtherNode,
      message: 'no other node can keep its memory: add one, or see the condition CheckpointReady',
    }
  const why = others.map(node => ({ node, word: whyNoReceiver(slot, node) }))
  if (why.some(({ word }) => word === undefined)) return undefined
  return {
    reason: reasons.noOtherNode,
    message: `no other node can take its last changes now: ${why.map(({ node, word }) => `node ${node} ${word}`).join(', ')}`,
  }
}

/**
 * Returns the snapshot with the numbers of pods that a suspended set is to have: the primaries that cannot leave yet, and
 * its backups as long as there is such a primary.
 */
export function withSuspension(s: Snapshot): Snapshot {
  // Without the caches of memory nothing is known of it, so nothing ends.
  if (!s.set.suspended || (s.memory === undefined && s.set.memory !== undefined)) return s
  const replicas = s.memory === undefined ? 0 : suspensionOf(s, s.memory).running.length
  const none = replicas === 0 ? { hotBackups: 0, coldBackups: 0 } : {}
  return { ...s, set: { ...s.set, replicas, ...none } }
}
