import { labels } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { slotLeaseName } from '../../api/slot-lease.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Pod } from '../../kube/resources.ts'
import { slowStart } from '../../kube/slow-start.ts'
import { StopNow } from '../../kube/stop.ts'
import { deleteLease, writeLease, writePolicy } from '../memory/write-lease.ts'
import type { Action, ActionType, DeleteReason, Outcome, Plan } from '../plan.ts'
import { prune, record } from '../revisions/write.ts'
import { publish, serve, withdraw } from '../services/write.ts'
import { restore } from './bring-state.ts'
import { adopt, release } from './claim.ts'
import type { ActContext } from './context.ts'
import { convert, wake } from './convert.ts'
import { create, createWithState } from './create.ts'
import { giveUp } from './give-up.ts'
import { promote } from './promote.ts'
import { retire } from './relabel.ts'
import { requireGone } from './still-gone.ts'
import { requireUnready } from './still-unready.ts'
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
    case 'convert':
      return convert(context, action)
    case 'wake':
      return wake(context, action)
    case 'restore':
      return restore(context, action)
    case 'promote':
      return promote(context, action)
    case 'create':
      if (action.state) return createWithState(context, action)
      return { type: 'done', action, pod: await write(context, action) }
    default:
      return { type: 'done', action, pod: await write(context, action) }
  }
}

type Of<Type extends Action['type']> = Extract<Action, { readonly type: Type }>

/** Carries out an action that succeeds or fails as a whole. @returns the pod as the API server returned it */
async function write(
  context: ActContext,
  action: Exclude<Action, Of<'convert' | 'wake' | 'restore' | 'promote'>>,
): Promise<Pod | undefined> {
  switch (action.type) {
    case 'create':
      if (action.role?.ends) await requireGone(context, action.role.ends)
      return create(context, action)
    case 'retire':
      return retire(context, action)
    case 'adopt':
    case 'release':
      return changeOwner(context, action)
    case 'delete':
      await remove(context, action)
      return undefined
    case 'writeSlot':
      await writeSlot(context, action)
      return undefined
    case 'writePolicy': {
      const { namespace, name } = context.set
      const ref = { namespace, name: slotLeaseName(name, action.slot) }
      await writePolicy(context, ref, action.version, action.policy)
      return undefined
    }
    case 'deleteSlot':
      if (action.ends) await requireGone(context, action.ends)
      await deleteLease(context, action.slot, action.lease)
      return undefined
    case 'applyService':
      await serve(context, action)
      return undefined
    case 'applyEndpoints':
      await publish(context, action)
      return undefined
    case 'giveUp':
      await giveUp(context, action)
      return undefined
    case 'saveRevision':
      await record(context, action.revision, action.number)
      return undefined
    case 'deleteRevision':
      await prune(context, action.revision)
      return undefined
    case 'deleteService':
      await withdraw(context, action)
      return undefined
  }
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
  const kind = kindLabelOf(context.podOf(pod.uid))
  const by = canWait(reason) ? unhurried(context) : context
  await deletePod(by, pod, current => kindLabelOf(current) === kind)
}

async function writeSlot(context: ActContext, action: Of<'writeSlot'>): Promise<void> {
  if (action.lease.ending !== undefined) await requireUnready(context, action.lease.holder.name)
  if (action.ends) await requireGone(context, action.ends)
  const at = context.monotonic()
  await writeLease(unhurried(context), action.lease, action.version, action.restarts)
  if (action.requestsHandover) context.requestedHandover(action.lease, at)
}
