import { labels } from '../../api/labels.ts'
import { slotLeaseName } from '../../api/slot-lease.ts'
import { isKubeError } from '../../kube/errors.ts'
import { slowStart } from '../../kube/slow-start.ts'
import { StopNow } from '../../kube/stop.ts'
import { deleteLease, writeLease, writePolicy } from '../memory/write-lease.ts'
import type { Action, ActionType, DeleteReason, Plan } from '../plan.ts'
import { prune, record } from '../revisions/write.ts'
import { publish, serve, withdraw } from '../services/write.ts'
import { adopt, release } from './claim.ts'
import type { ActContext } from './context.ts'
import { convert, wake } from './convert.ts'
import { create } from './create.ts'
import { giveUp } from './give-up.ts'
import type { Outcome } from './outcome.ts'
import { promote, retire } from './promote.ts'
import { requireGone } from './still-gone.ts'
import { requireUnready } from './still-unready.ts'
import { convertWithState, createWithState, restore } from './with-state.ts'
import { deletePod } from './write-pod.ts'

export interface Acted {
  /** Outcomes of all actions that were tried. */
  readonly outcomes: Outcome[]
  /** The pass ended before its plan did: nothing failed, and the next pass can continue at once. */
  readonly isCut: boolean
}

/**
 * A plan may have thousands of these actions. After this many, the pass ends with the current batch, and the next pass
 * reads the set again: it may have changed, and other sets wait for the worker.
 */
const bulkAPass = 64
const bulk: ReadonlySet<ActionType> = new Set(['adopt', 'release', 'create', 'delete', 'deleteSlot'])

/**
 * Performs a plan, tier after tier. If an action of a tier fails, the tiers after it wait for the next pass, which sees
 * the actual result. Tiers with `aside` run all the same.
 * @throws the signal's reason; StopNow when this process may no longer write.
 */
export async function act(context: ActContext, plan: Plan): Promise<Acted> {
  // Only if the plan starts an app that has not run yet: takeovers that only change roles must not wait for this.
  const starts = plan.tiers.some(({ actions }) =>
    actions.some(action => ('wake' in action ? action.wake : action.type === 'wake')),
  )
  if (starts && (await context.isNamespaceTerminating())) return { outcomes: [], isCut: false }
  const outcomes: Outcome[] = []
  let isExact = true
  let isCut = false
  let left = bulkAPass
  const mayGoOn = (batch: readonly Action[]) => {
    context.signal.throwIfAborted()
    if (!context.mayWrite()) throw new StopNow('this process no longer leads')
    if (context.mustYield() || (left <= 0 && batch.some(({ type }) => bulk.has(type)))) {
      isCut = true
      return false
    }
    left -= batch.filter(({ type }) => bulk.has(type)).length
    return true
  }
  // Pods that could not be adopted belong to another owner: no action touches them.
  const notOurs = new Set<string>()
  for (const { actions: planned, aside } of plan.tiers) {
    if (!isExact && !aside) continue
    const actions = planned.filter(action => !('pod' in action && notOurs.has(action.pod.uid)))
    const done = await slowStart(actions, action => perform(context, action), isHarmless, mayGoOn)
    outcomes.push(...done)
    for (const { type, action } of done)
      if (type === 'failed' && action.type === 'adopt') notOurs.add(action.pod.uid)
    if (aside) continue
    isExact =
      done.every(outcome => isDone(outcome) || isRefusedClaim(outcome)) && done.length === actions.length
  }
  return { outcomes, isCut }
}

/** Ownership can wait: an admission rule that always rejects an adoption must not block failovers. */
const isRefusedClaim = (outcome: Outcome): boolean =>
  outcome.type === 'failed' &&
  (outcome.action.type === 'adopt' || outcome.action.type === 'release') &&
  isKubeError(outcome.error, 'Forbidden', 'Invalid')

/** A gate that does not answer says nothing about other pods: they do not wait for it. */
const isHarmless = (outcome: Outcome): boolean => isDone(outcome) || outcome.type === 'pending'

const isDone = (outcome: Outcome): boolean => outcome.type === 'done'

/** There are few urgent connections, so bulk requests use the others. */
const unhurried = (context: ActContext): ActContext => ({ ...context, urgentApi: context.api })

function canWait(reason: DeleteReason): boolean {
  switch (reason) {
    case 'Surplus':
    case 'Finished':
    case 'Outdated':
    case 'Retired':
      return true
    case 'Superseded':
    case 'GateSpent':
    case 'Misfit':
    case 'Spoiled':
      return false
    default:
      return reason satisfies never
  }
}

async function perform(context: ActContext, action: Action): Promise<Outcome> {
  try {
    return await execute(context, action)
  } catch (error) {
    return { type: 'failed', action, error }
  }
}

async function execute(context: ActContext, action: Action): Promise<Outcome> {
  switch (action.type) {
    case 'create':
      if (action.state) return createWithState(context, { ...action, state: action.state })
      if (action.role?.ends) await requireGone(context, action.role.ends)
      return { type: 'done', action, pod: await create(context, action) }
    case 'convert':
      if (action.state) return convertWithState(context, { ...action, state: action.state })
      return convert(context, action)
    case 'wake':
      return wake(context, action)
    case 'restore':
      return restore(context, action)
    case 'delete': {
      const kind = context.podOf(action.pod.uid)?.metadata.labels?.[labels.type]
      const by = canWait(action.reason) ? unhurried(context) : context
      await deletePod(by, action.pod, current => current.metadata.labels?.[labels.type] === kind)
      return { type: 'done', action, pod: undefined }
    }
    case 'adopt':
    case 'release': {
      const known = context.podOf(action.pod.uid)
      if (known === undefined) return { type: 'done', action, pod: undefined }
      const claim = action.type === 'adopt' ? adopt : release
      const pod = await claim(context, action.pod, known)
      // The status describes the pods in the cache. A pod without the label is not one of them.
      return {
        type: 'done',
        action,
        pod: known.metadata.labels?.[labels.set] === undefined ? undefined : pod,
      }
    }
    case 'promote':
      return promote(context, action)
    case 'retire':
      return { type: 'done', action, pod: await retire(context, action) }
    case 'writeSlot': {
      if (action.lease.ending !== undefined) await requireUnready(context, action.lease.holder.name)
      if (action.ends) await requireGone(context, action.ends)
      const at = context.monotonic()
      await writeLease(unhurried(context), action.lease, action.version, action.restarts)
      if (action.requestsHandover) context.requestedHandover(action.lease, at)
      return { type: 'done', action, pod: undefined }
    }
    case 'writePolicy': {
      const { namespace, name } = context.set
      const ref = { namespace, name: slotLeaseName(name, action.slot) }
      await writePolicy(context, ref, action.version, action.policy)
      return { type: 'done', action, pod: undefined }
    }
    case 'deleteSlot':
      if (action.ends) await requireGone(context, action.ends)
      await deleteLease(context, action.slot, action.lease)
      return { type: 'done', action, pod: undefined }
    case 'applyService':
      await serve(context, action)
      return { type: 'done', action, pod: undefined }
    case 'applyEndpoints':
      await publish(context, action)
      return { type: 'done', action, pod: undefined }
    case 'giveUp':
      await giveUp(context, action)
      return { type: 'done', action, pod: undefined }
    case 'saveRevision':
      await record(context, action.revision, action.number)
      return { type: 'done', action, pod: undefined }
    case 'deleteRevision':
      await prune(context, action.revision)
      return { type: 'done', action, pod: undefined }
    case 'deleteService':
      await withdraw(context, action)
      return { type: 'done', action, pod: undefined }
    default:
      return action satisfies never
  }
}
