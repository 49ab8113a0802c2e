import { labels } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Pod } from '../../kube/resources.ts'
import { slowStart } from '../../kube/slow-start.ts'
import { StopNow } from '../../kube/stop.ts'
import { actOnSlot, unhurried } from '../../slot/act/on-slot.ts'
import { requireGone } from '../../slot/act/still-gone.ts'
import { deletePod } from '../../slot/act/write-pod.ts'
import type { Action, ActionType, DeleteReason, Outcome, Plan } from '../plan.ts'
import { graceWithoutApp } from '../pod/held-end.ts'
import { prune, record } from '../revisions/write.ts'
import { adopt, release } from './claim.ts'
import type { ActContext } from './context.ts'
import { create, createWithState } from './create.ts'
import { giveUp } from './give-up.ts'

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

function canWait(reason: DeleteReason): boolean {
  switch (reason) {
    case 'Surplus':
    case 'Suspended':
    case 'Finished':
    case 'Outdated':
    case 'Retired':
    case 'Stranded':
    case 'CalledOff':
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
      return makePod(context, action)
    case 'adopt':
    case 'release':
      return { type: 'done', action, pod: await changeOwner(context, action) }
    case 'delete':
      await remove(context, action)
      break
    case 'giveUp':
      await giveUp(context, action)
      break
    case 'saveRevision':
      await record(context, action.revision, action.number)
      break
    case 'deleteRevision':
      await prune(context, action.revision)
      break
    default:
      return actOnSlot(context, action)
  }
  return { type: 'done', action, pod: undefined }
}

type Of<Type extends Action['type']> = Extract<Action, { readonly type: Type }>

async function makePod(context: ActContext, action: Of<'create'>): Promise<Outcome> {
  if (action.state) return createWithState(context, action)
  if (action.role?.ends) await requireGone(context, action.role.ends)
  return { type: 'done', action, pod: await create(context, action) }
}

async function changeOwner(context: ActContext, action: Of<'adopt' | 'release'>): Promise<Pod | undefined> {
  const known = context.podOf(action.pod.uid)
  if (known === undefined) return undefined
  const claim = action.type === 'adopt' ? adopt : release
  const pod = await claim(context, action.pod, known)
  // Without the label, the cache never sees this write: do not wait for it.
  return known.metadata.labels?.[labels.set] === undefined ? undefined : pod
}

async function remove(context: ActContext, { pod, reason }: Of<'delete'>): Promise<void> {
  const known = context.podOf(pod.uid)
  const kind = kindLabelOf(known)
  const by = canWait(reason) ? unhurried(context) : context
  // Its successor serves, or it was saved to be suspended.
  const isOver = reason === 'Retired' || reason === 'Suspended'
  const grace = known !== undefined && isOver ? graceWithoutApp(known) : undefined
  await deletePod(by, pod, current => kindLabelOf(current) === kind, grace)
}
