import type { SlotActionOf } from '../decide/actions.ts'
import { bringState } from './bring-state.ts'
import type { SlotContext } from './context.ts'
import type { Outcome } from './outcome.ts'
import { kindOf, takeOver } from './take-over.ts'

/** Converts a backup, with its slot's pulled state if there is one. */
export const convert = (context: SlotContext, action: SlotActionOf<'convert'>): Promise<Outcome> =>
  takeOver(context, action, { ...action, ...bringState(context, action, action.pod) })

/** Opens the gate of a converted pod; its kind stays. */
export async function wake(context: SlotContext, action: SlotActionOf<'wake'>): Promise<Outcome> {
  const { pod } = action
  const to = kindOf(context, pod)
  if (to === 'coldbackup') return { type: 'done', action, pod: undefined }
  return takeOver(context, action, { pod, to, role: undefined, wake: true })
}
