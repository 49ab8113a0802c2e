import type { PodKind } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Action } from '../plan.ts'
import { viewOf } from '../pod/view.ts'
import type { GiveResult } from '../pulled/give.ts'
import type { StateRef } from '../pulled/view.ts'
import { switchOver } from '../services/write.ts'
import type { PodView } from '../snapshot.ts'
import type { ActContext } from './context.ts'
import { create } from './create.ts'
import type { Outcome, Phases } from './outcome.ts'
import { relabel } from './relabel.ts'
import { deletePod } from './write-pod.ts'

export type Taking = Extract<Action, { type: 'convert' | 'create' }> & { readonly state: StateRef }
export type Restore = Extract<Action, { type: 'restore' }>

/** Makes a backup the primary with its slot's state. Order: gate, state, then the label that Services select by. */
export function convertWithState(
  context: ActContext,
  action: Taking & { type: 'convert' },
): Promise<Outcome> {
  return takeOver(context, action, action.pod, action.wake)
}

/**
 * Creates a pod that gets a state. It starts as a hot backup, which runs the app and which no Service selects. If the
 * operator crashes in between, the next leader finds a hot backup to convert.
 */
export async function createWithState(
  context: ActContext,
  action: Taking & { type: 'create' },
): Promise<Outcome> {
  const made = await create(context, { ...action, kind: 'hotbackup', role: undefined })
  const pod = viewOf(made, undefined)
  if (pod === undefined) throw new Error(`pod ${action.name} was created with another label than requested`)
  return takeOver(context, action, pod, false)
}

async function takeOver(context: ActContext, action: Taking, pod: PodView, wake: boolean): Promise<Outcome> {
  const { set, role } = { set: context.set, role: action.role }
  const phases: Record<string, number> = {}
  const takeover = async (): Promise<Outcome> => {
    try {
      if (role === undefined) throw new Error('no pod takes a state without a slot')
      let openedGate: string | undefined
      if (wake) {
        const gate = await context.openGate({
          setUid: set.uid,
          pod: { namespace: set.namespace, name: pod.name, uid: pod.uid },
          to: 'primary',
          timeoutMs: set.wakeupTimeout * 1000,
          signal: context.signal,
        })
        if (gate.type === 'failed') {
          await deletePod(context, pod, current => kindLabelOf(current) === 'coldbackup')
          return { type: 'spent', action, why: gate.why }
        }
        openedGate = gate.openedGate
      }
      const given = await context.giveState(pod, role.slot, role.replaces?.reason === 'Replaced')
      if (given.result.type !== 'taken') return setback(context, action, pod, role.slot, given.result)
      phases['serving'] = context.monotonic()
      const current = context.podOf(pod.uid)
      const from = (kindLabelOf(current) ?? 'hotbackup') as PodKind
      // In parallel, so that both become visible at once.
      const [written, switched] = await Promise.allSettled([
        relabel(context, pod, from, 'primary', role, openedGate),
        switchOver(context, {
          slot: role.slot,
          ip: given.result.ip,
          pod: pod.name,
          uid: pod.uid,
          node: current?.spec?.nodeName ?? pod.node,
        }),
      ])
      if (written.status === 'rejected') throw written.reason
      // The next pass compares all endpoints and retries this.
      if (switched.status === 'rejected')
        context.log.warn({ err: switched.reason }, 'cannot switch the endpoints')
      phases['published'] = context.monotonic()
      context.heldState(role.slot, {
        name: pod.name,
        uid: pod.uid,
        epoch: role.epoch,
        restarts: given.result.restarts,
      })
      const state = given.state ?? action.state
      return { type: 'done', action: { ...action, state }, pod: written.value, phases: phases as Phases }
    } catch (error) {
      return { type: 'failed', action, error }
    }
  }
  return background(context, action, pod, takeover)
}

/** Gives an app that restarted in its pod its state back. */
export function restore(context: ActContext, action: Restore): Promise<Outcome> {
  const { pod, slot } = action
  return background(context, action, pod, async () => {
    try {
      const given = await context.giveState(pod, slot, false)
      if (given.result.type !== 'taken') {
        // The app runs without it: from now on its own answers are its state.
        if (given.result.type === 'refused') context.beganAnew(slot)
        return { type: 'setback', action, why: given.result.why }
      }
      const { restarts } = given.result
      context.heldState(slot, { name: pod.name, uid: pod.uid, epoch: pod.epoch, restarts })
      return { type: 'done', action: { ...action, state: given.state ?? action.state }, pod: undefined }
    } catch (error) {
      return { type: 'failed', action, error }
    }
  })
}

function setback(
  context: ActContext,
  action: Taking,
  { uid }: PodView,
  slot: number,
  result: Exclude<GiveResult, { type: 'taken' }>,
): Outcome {
  // Before the next decision: the next pass must not try the same pod.
  context.failedOnStage(uid, result.why)
  if (result.type === 'refused') context.refusedState(slot)
  return { type: 'setback', action, why: result.why }
}

/** An app that is up takes its state within the pass; an app that is still starting gets it in the background. */
async function background(
  context: ActContext,
  action: Taking | Restore,
  pod: PodView,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const role = action.type === 'restore' ? undefined : action.role
  return (
    (await context.inFlightPromotions.start(pod, 'primary', role, work, context.finishedLate)) ?? {
      type: 'pending',
      action,
    }
  )
}
