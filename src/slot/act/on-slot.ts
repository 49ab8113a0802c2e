import { slotLeaseName } from '../../api/numbered-slot.ts'
import type { SlotAction, SlotActionOf } from '../decide/actions.ts'
import { publish, serve, withdraw } from '../endpoints/write.ts'
import { restore } from './bring-state.ts'
import type { SlotContext, SlotPort } from './context.ts'
import { convert, wake } from './convert.ts'
import { endGrant } from './end-grant.ts'
import type { Outcome } from './outcome.ts'
import { promote } from './promote.ts'
import { retire } from './relabel.ts'
import { stateSilence } from './state-silence.ts'
import { requireGone } from './still-gone.ts'
import { requireNotResumed } from './still-not-resumed.ts'
import { requireStanding } from './still-standing.ts'
import { requireUnready } from './still-unready.ts'
import { deleteLease, writeLease, writePolicy } from './write-lease.ts'

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
    case 'writeSlot':
      await writeSlot(context, action)
      break
    case 'writePolicy': {
      const { namespace, name } = context.owner
      const ref = { namespace, name: slotLeaseName(name, action.slot) }
      await writePolicy(context, ref, action.version, action.policy)
      break
    }
    case 'endGrant':
      return { type: 'done', action, pod: await endGrant(context, action) }
    case 'stateSilence':
      await stateSilence(context, action)
      break
    case 'deleteSlot':
      if (action.ends) await requireGone(context, action.ends)
      await deleteLease(context, action.slot, action.lease)
      break
    case 'applyService':
      await serve(context, action)
      break
    case 'applyEndpoints':
      await publish(context, action)
      break
    case 'deleteService':
      await withdraw(context, action)
      break
    default:
      action satisfies never
  }
  return { type: 'done', action, pod: undefined }
}

async function writeSlot(context: SlotContext, action: SlotActionOf<'writeSlot'>): Promise<void> {
  if (action.standing) await requireStanding(context, action.standing)
  // An agent that was away for long may come at the moment at which its pod is given up.
  else if (action.unresumed) await requireNotResumed(context, action.unresumed)
  else if (action.lease.ending !== undefined) await requireUnready(context, action.lease.holder.name, action)
  if (action.ends) await requireGone(context, action.ends)
  const at = context.monotonic()
  const by = action.standing ? context : unhurried(context)
  await writeLease(by, action.lease, action.version, action.restarts)
  if (action.requestsHandover) context.requestedHandover(action.lease, at)
}

/** There are few urgent connections, so bulk requests use the others. */
export const unhurried = <Port extends SlotPort>(context: Port): Port => ({
  ...context,
  urgentApi: context.api,
})
