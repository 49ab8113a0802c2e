import { labels, type PodKind } from '../../api/labels.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Action } from '../plan.ts'
import type { PodView } from '../snapshot.ts'
import { askGate } from './ask-gate.ts'
import type { ActContext } from './context.ts'
import type { Outcome } from './outcome.ts'
import { relabel } from './relabel.ts'
import { deletePod } from './write-pod.ts'

export type Convert = Extract<Action, { type: 'convert' }>
export type Rewake = Extract<Action, { type: 'rewake' }>

/** T4, T5, T6: opens the gate where there is one, then moves the label. */
export async function convert(context: ActContext, action: Convert): Promise<Outcome> {
  const { pod, to, role } = action
  const from = kindOf(context, pod)
  if (!action.wake) return done(action, await relabel(context, pod, from, to, role))
  return wakeFirst(context, action, to, openedGate => relabel(context, pod, from, to, role, openedGate))
}

/** Opens the gate of a converted pod whose sandbox was made anew; its kind stays. */
export async function rewake(context: ActContext, action: Rewake): Promise<Outcome> {
  const kind = kindOf(context, action.pod)
  if (kind === 'coldbackup') return { type: 'done', action, pod: undefined }
  return wakeFirst(context, action, kind, openedGate =>
    relabel(context, action.pod, kind, kind, undefined, openedGate),
  )
}

async function wakeFirst(
  context: ActContext,
  action: Convert | Rewake,
  to: 'primary' | 'hotbackup',
  then: (openedGate: string | undefined) => Promise<Pod>,
): Promise<Outcome> {
  const { wakes } = context
  const { pod } = action
  const role = action.type === 'convert' ? action.role : undefined
  const conversion = async (): Promise<Outcome> => {
    try {
      const gate = await askGate(context, pod, to)
      if (gate.type === 'opened') return done(action, await then(gate.openedGate))
      // A gate that stays silent costs its pod: the next pass takes the next one, or makes a new one.
      await deletePod(
        context,
        pod,
        current => current.metadata.labels?.[labels.type] === kindOf(context, pod),
      )
      return { type: 'spent', action, why: gate.why }
    } catch (error) {
      return { type: 'failed', action, error }
    }
  }
  const recorded = async () => {
    const outcome = await conversion()
    if (outcome.type === 'done' && outcome.pod !== undefined) context.wrote(outcome.pod)
    return outcome
  }
  return (await wakes.start(pod, to, role, recorded, context.finishedLate)) ?? { type: 'pending', action }
}

const done = (action: Action, pod: Pod): Outcome => ({ type: 'done', action, pod })

/** The kind that the pod's label names: the view's kind already shows what it is being woken as. */
const kindOf = (context: ActContext, pod: PodView): PodKind =>
  (context.podOf(pod.uid)?.metadata.labels?.[labels.type] as PodKind | undefined) ?? pod.kind
