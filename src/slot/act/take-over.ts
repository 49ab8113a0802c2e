import { isPodKind, type PodKind } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Role, SlotAction } from '../decide/actions.ts'
import type { Candidate } from '../decide/snapshot.ts'
import { switchOver } from '../endpoints/write.ts'
import { askGate } from '../gate/ask-gate.ts'
import type { CandidatePort, EndpointPort, SlotContext } from './context.ts'
import type { Outcome, Phases } from './outcome.ts'
import { relabel } from './relabel.ts'
import { deletePod } from './write-pod.ts'

/** A pod that gets another kind, and with `role` a slot. */
export interface Takeover<Action = SlotAction> {
  readonly pod: Candidate
  readonly to: 'primary' | 'hotbackup'
  readonly role: Role | undefined
  /** It waits at its gate. */
  readonly wake: boolean
  /** Writes the slot's record; absent: the slot has none. @throws if the takeover must not continue. */
  readonly swap?: () => Promise<void>
  /** Brings the slot's state into the pod; absent: there is none. */
  readonly bring?: () => Promise<Brought<Action> | { readonly type: 'failed'; readonly why: string }>
}

/** The pod continues with the state of its slot. */
export interface Brought<Action = SlotAction> {
  readonly type: 'brought'
  readonly ip: string | undefined
  /** Version of the pod that serves, if it is known: the version before is outdated. */
  readonly resourceVersion?: string
  /** The action with the state as it was brought. */
  readonly action: Action
  /** To be called once the pod has the slot. */
  readonly held?: () => void
}

/**
 * T4, T5, T6, T10. Order: the slot's record, the gate, the state, then label and endpoints. The swap of the record is
 * the decision; the current leader does the later steps, so a crash between any two writes loses nothing. The gate opens
 * before the label changes. For a primary, because Services select by the label. For both kinds, because a kubelet that
 * has just processed a change of the pod looks at the gate only in its next round, up to a second later.
 */
export function takeOver<Action>(
  context: SlotContext<Action>,
  action: Action,
  { pod, to, role, wake, swap, bring }: Takeover<Action>,
): Promise<Outcome<Action>> {
  const from = kindOf(context, pod)
  const phases: Partial<Record<keyof Phases, number>> = {}
  const reached = (phase: keyof Phases) => {
    phases[phase] = context.monotonic()
  }
  const steps = async (answered: () => void): Promise<Outcome<Action>> => {
    if (swap) {
      await swap()
      reached('lease')
    }
    // After the record: the pod's node can fetch missing data while the gate opens.
    const gate = wake ? await askGate(context, pod, to) : undefined
    // Only ordinary writes remain.
    if (!bring) answered()
    if (gate?.type === 'failed') {
      // A pod whose gate does not answer is deleted: the next pass takes another pod or creates one.
      await deletePod(context, pod, current => kindLabelOf(current) === from)
      return { type: 'spent', action, why: gate.why }
    }
    if (gate) reached('woken')
    const brought = await bring?.()
    if (brought?.type === 'failed') {
      // Before the next decision: the next pass must not call the same pod.
      context.failedOnStage(pod.uid, brought.why)
      return { type: 'setback', action, why: brought.why }
    }
    if (brought) reached('serving')
    const { resourceVersion = pod.resourceVersion } = brought ?? {}
    // The label is for Services that select by it, the endpoints are ours: both become visible at once.
    const [written, switched] = await Promise.allSettled([
      relabel(context, { ...pod, resourceVersion }, from, to, role, gate?.openedGate),
      role && brought?.ip !== undefined ? switchTo(context, pod, role.slot, brought.ip) : undefined,
    ])
    if (written.status === 'rejected') throw written.reason
    // The next pass compares all endpoints and retries this.
    if (switched.status === 'rejected')
      context.log.warn({ err: switched.reason }, 'cannot switch the endpoints')
    reached('published')
    brought?.held?.()
    return { type: 'done', action: brought?.action ?? action, pod: written.value, phases }
  }
  return wake || bring ? inBackground(context, action, { pod, to, role }, steps) : steps(() => {})
}

/** Runs work on a pod beside the pass, which waits for it only as long as `InFlightPromotions` says. */
export async function inBackground<Action>(
  { inFlightPromotions, finishedLate }: Pick<SlotContext<Action>, 'inFlightPromotions' | 'finishedLate'>,
  action: Action,
  { pod, to, role }: Pick<Takeover, 'pod' | 'to' | 'role'>,
  work: (answered: () => void) => Promise<Outcome<Action>>,
): Promise<Outcome<Action>> {
  const caught = async (answered: () => void): Promise<Outcome<Action>> => {
    try {
      return await work(answered)
    } catch (error) {
      return { type: 'failed', action, error }
    }
  }
  return (await inFlightPromotions.start(pod, to, role, caught, finishedLate)) ?? { type: 'pending', action }
}

/** Returns the kind in the pod's label. During a wake-up or promotion, the view already has the new kind. */
export function kindOf({ podOf }: Pick<CandidatePort, 'podOf'>, { uid, kind }: Candidate): PodKind {
  const label = kindLabelOf(podOf(uid))
  return isPodKind(label) ? label : kind
}

const switchTo = (
  context: EndpointPort & Pick<CandidatePort, 'podOf'>,
  { name, uid, node }: Candidate,
  slot: number,
  ip: string,
) => switchOver(context, { slot, ip, pod: name, uid, node: context.podOf(uid)?.spec?.nodeName ?? node })
