import type { PodKind } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Action } from '../plan.ts'
import type { PodView } from '../snapshot.ts'
import { askGate } from './ask-gate.ts'
import type { ActContext } from './context.ts'
import type { Outcome } from './outcome.ts'
import { relabel } from './relabel.ts'
import { deletePod } from './write-pod.ts'

export type Convert = Extract<Action, { type: 'convert' }>
export type Wake = Extract<Action, { type: 'wake' }>

/**
 * T4, T5, T6. Opens the gate of a cold backup before its label changes. For a primary, because Services select by the
 * label. For both kinds, because a kubelet that has just processed a change of the pod looks at the gate only in its
 * next round, up to a second later.
 */
export async function convert(context: ActContext, action: Convert): Promise<Outcome> {
  const { pod, to, role } = action
  const from = kindOf(context, pod)
  if (!action.wake) return done(action, await relabel(context, pod, from, to, role))
  return openFirst(context, action, from, to, openedGate => relabel(context, pod, from, to, role, openedGate))
}

/** Opens the gate of a converted pod; its kind stays. */
export async function wake(context: ActContext, action: Wake): Promise<Outcome> {
  const kind = kindOf(context, action.pod)
  if (kind === 'coldbackup') return { type: 'done', action, pod: undefined }
  return openFirst(context, action, kind, kind, openedGate =>
    relabel(context, action.pod, kind, kind, undefined, openedGate),
  )
}

async function openFirst(
  context: ActContext,
  action: Convert | Wake,
  from: PodKind,
  to: 'primary' | 'hotbackup',
  then: (openedGate: string | undefined) => Promise<Pod>,
): Promise<Outcome> {
  const { inFlightPromotions } = context
  const { pod } = action
  const role = action.type === 'convert' ? action.role : undefined
  const conversion = async (answered: () => void): Promise<Outcome> => {
    try {
      const gate = await askGate(context, pod, to)
      answered()
      if (gate.type === 'opened') return done(action, await then(gate.openedGate))
      // A pod whose gate does not answer is deleted: the next pass takes another pod or creates one.
      await deletePod(context, pod, current => kindLabelOf(current) === from)
      return { type: 'spent', action, why: gate.why }
    } catch (error) {
      return { type: 'failed', action, error }
    }
  }
  return (
    (await inFlightPromotions.start(pod, to, role, conversion, context.finishedLate)) ?? {
      type: 'pending',
      action,
    }
  )
}

const done = (action: Action, pod: Pod): Outcome => ({ type: 'done', action, pod })

/** Returns the kind in the pod's label. During a wake-up, the view already has the new kind. */
const kindOf = (context: ActContext, pod: PodView): PodKind =>
  (kindLabelOf(context.podOf(pod.uid)) as PodKind | undefined) ?? pod.kind
