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
/** Takes what is to be done after all tiers; it never rejects. */
export type Afterwards = (work: () => Promise<Outcome>) => void
export type Wake = Extract<Action, { type: 'wake' }>

/**
 * T4, T5, T6. A primary is what Services select: its gate opens before the label moves. A hot backup counts from its
 * label on, like one that is made, and nobody waits for its app: its gate opens when the tiers below are written, as a
 * gate that opens keeps its node busy. Who dies in between leaves a hot backup at its gate, which the next pass wakes.
 */
export async function convert(
  context: ActContext,
  action: Convert,
  afterwards: Afterwards,
): Promise<Outcome> {
  const { pod, to, role } = action
  const from = kindOf(context, pod)
  if (action.wake && to === 'primary')
    return openFirst(context, action, from, to, openedGate =>
      relabel(context, pod, from, to, role, openedGate),
    )
  const written = await relabel(context, pod, from, to, role)
  if (action.wake) {
    const { resourceVersion } = written.metadata
    const converted = { ...pod, kind: to, resourceVersion }
    afterwards(() => wake(context, { type: 'wake', pod: converted, again: false }, to))
  }
  return done(action, written)
}

/** Opens the gate of a pod that is converted; its kind stays. */
export async function wake(
  context: ActContext,
  action: Wake,
  kind: PodKind = kindOf(context, action.pod),
): Promise<Outcome> {
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
  const { wakes } = context
  const { pod } = action
  const role = action.type === 'convert' ? action.role : undefined
  const conversion = async (): Promise<Outcome> => {
    try {
      const gate = await askGate(context, pod, to)
      if (gate.type === 'opened') return done(action, await then(gate.openedGate))
      // A gate that stays silent costs its pod: the next pass takes the next one, or makes a new one.
      await deletePod(context, pod, current => current.metadata.labels?.[labels.type] === from)
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
