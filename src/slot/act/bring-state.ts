import type { Role, SlotActionOf } from '../decide/actions.ts'
import type { PodRef } from '../decide/pod-ref.ts'
import type { StateRef } from '../decide/pulled-view.ts'
import type { SlotContext, StatePort } from './context.ts'
import type { Outcome } from './outcome.ts'
import { inBackground, type Takeover } from './take-over.ts'

/** An action by which a pod takes a slot. */
interface Taking {
  readonly role: Role | undefined
  readonly state?: StateRef
}

/** Gives a successor the pulled state of its slot; undefined if there is none to give. */
export function bringState<Action extends Taking>(
  context: StatePort,
  action: Action,
  { name, uid }: Pick<PodRef, 'name' | 'uid'>,
): Pick<Takeover<Action>, 'bring'> {
  const { role, state: expected } = action
  if (expected === undefined || role === undefined) return {}
  const { slot, epoch, replaces } = role
  return {
    bring: async () => {
      const { result, state } = await context.giveState({ name, uid }, slot, replaces?.reason === 'Replaced')
      if (result.type === 'refused') context.refusedState(slot)
      if (result.type !== 'taken') return { type: 'failed', why: result.why }
      const { ip, restarts } = result
      const held = () => context.heldState(slot, { name, uid, epoch, restarts })
      return { type: 'brought', ip, action: { ...action, state: state ?? expected }, held }
    },
  }
}

/** Gives an app that restarted in its pod its state back. */
export function restore(context: SlotContext, action: SlotActionOf<'restore'>): Promise<Outcome> {
  const { pod, slot } = action
  return inBackground(context, action, { pod, to: 'primary', role: undefined }, async () => {
    const { result, state } = await context.giveState(pod, slot, false)
    if (result.type !== 'taken') {
      // The app runs without it: from now on its own answers are its state.
      if (result.type === 'refused') context.beganAnew(slot)
      return { type: 'setback', action, why: result.why }
    }
    const { restarts } = result
    context.heldState(slot, { name: pod.name, uid: pod.uid, epoch: pod.epoch, restarts })
    return { type: 'done', action: { ...action, state: state ?? action.state }, pod: undefined }
  })
}
