import { slotLeaseName } from '../../api/set-slot.ts'
import { deleteLease, writeLease, writePolicy } from '../memory/write-lease.ts'
import { publish, serve, withdraw } from '../services/write.ts'
import type { SlotAction, SlotActionOf } from '../slot-actions.ts'
import { restore } from './bring-state.ts'
import { convert, wake } from './convert.ts'
import type { Outcome } from './outcome.ts'
import { promote } from './promote.ts'
import { retire } from './relabel.ts'
import type { SlotContext, SlotPort } from './slot-context.ts'
import { requireGone } from './still-gone.ts'
import { requireUnready } from './still-unready.ts'

/** Carries out one action on a slot. @throws KubeError, PodChangedError: the action failed as a whole. */
export async function actOnSlot(context: SlotContext, action: SlotAction): Promise<Outcome> {
  switch (action.type) {
    case 'convert':
      return convert(context, action)
    case 'wake':
      return wake(context, action)
    case 'restore':
      return restore(context, action)
    case 'promote':
      return promote(context, action)
    case 'retire':
      return { type: 'done', action, pod: await retire(context, action) }
    default:
      await write(context, action)
      return { type: 'done', action, pod: undefined }
  }
}

function write(
  context: SlotContext,
  action: Exclude<SlotAction, SlotActionOf<'convert' | 'wake' | 'restore' | 'promote' | 'retire'>>,
): Promise<unknown> {
  switch (action.type) {
    case 'writeSlot':
      return writeSlot(context, action)
    case 'writePolicy': {
      const { namespace, name } = context.owner
      const ref = { namespace, name: slotLeaseName(name, action.slot) }
      return writePolicy(context, ref, action.version, action.policy)
    }
    case 'deleteSlot':
      return deleteSlot(context, action)
    case 'applyService':
      return serve(context, action)
    case 'applyEndpoints':
      return publish(context, action)
    case 'deleteService':
      return withdraw(context, action)
  }
}

async function writeSlot(context: SlotContext, action: SlotActionOf<'writeSlot'>): Promise<void> {
  if (action.lease.ending !== undefined) await requireUnready(context, action.lease.holder.name)
  if (action.ends) await requireGone(context, action.ends)
  const at = context.monotonic()
  await writeLease(unhurried(context), action.lease, action.version, action.restarts)
  if (action.requestsHandover) context.requestedHandover(action.lease, at)
}

async function deleteSlot(
  context: SlotContext,
  { slot, ends, lease }: SlotActionOf<'deleteSlot'>,
): Promise<void> {
  if (ends) await requireGone(context, ends)
  await deleteLease(context, slot, lease)
}

/** There are few urgent connections, so bulk requests use the others. */
export const unhurried = <Port extends SlotPort>(context: Port): Port => ({
  ...context,
  urgentApi: context.api,
})
