import { labels } from '../../api/labels.ts'
import { isKubeError } from '../../kube/errors.ts'
import { StopNow } from '../../kube/stop.ts'
import { deleteLease, writeLease } from '../memory/write-lease.ts'
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
import { slowStart } from './slow-start.ts'
import { requireGone } from './still-gone.ts'
import { requireUnready } from './still-unready.ts'
import { convertWithState, createWithState, restore } from './with-state.ts'
import { deletePod } from './write-pod.ts'

export interface Acted {
  /** Of everything that was tried. */
  readonly outcomes: Outcome[]
  /** The pass was ended before its plan was: nothing has failed, and the next pass can go on at once. */
  readonly isCut: boolean
}

/**
 * Of these a plan may have thousands. After so many the pass ends with the batch, and another one looks at the set
 * first: something may have happened to it, and other sets are waiting for the worker.
 */
const bulkAPass = 64
const bulk: ReadonlySet<ActionType> = new Set(['adopt', 'release', 'create', 'delete', 'forget'])

/**
 * Performs a plan, tier after tier. A tier whose actions did not all succeed ends the pass: the tiers below it wait for
 * the next one, which sees what really became of this. Only what stands aside of the tiers is done all the same.
 * @throws the signal's reason; StopNow when this process may not write any more.
 */
export async function act(context: ActContext, plan: Plan): Promise<Acted> {
  // Asked only where an application would be started that has not run: where pods only change their role nobody waits.
  const starts = plan.stages.some(({ actions }) =>
    actions.some(action => ('wake' in action ? action.wake : action.type === 'wake')),
  )
  if (starts && (await context.isEnding())) return { outcomes: [], isCut: false }
  const outcomes: Outcome[] = []
  let isExact = true
  let isCut = false
  let left = bulkAPass
  const mayGoOn = (batch: readonly Action[]) => {
    context.signal.throwIfAborted()
    if (!context.mayWrite()) throw new StopNow('this process does not lead any more')
    if (context.mustYield() || (left <= 0 && batch.some(({ type }) => bulk.has(type)))) {
      isCut = true
      return false
    }
    left -= batch.filter(({ type }) => bulk.has(type)).length
    return true
  }
  // Pods that could not be adopted are somebody else's: nothing is done to them.
  const notOurs = new Set<string>()
  for (const { actions: planned, aside } of plan.stages) {
    if (!isExact && !aside) continue
    const actions = planned.filter(action => !('pod' in action && notOurs.has(action.pod.uid)))
    const stage = await slowStart(actions, action => perform(context, action), isHarmless, mayGoOn)
    outcomes.push(...stage)
    for (const { type, action } of stage)
      if (type === 'failed' && action.type === 'adopt') notOurs.add(action.pod.uid)
    if (aside) continue
    isExact =
      stage.every(outcome => isDone(outcome) || isRefusedClaim(outcome)) && stage.length === actions.length
  }
  return { outcomes, isCut }
}

/** Whose pod it is can wait: an admission rule that refuses an adoption for ever must not stop failovers. */
const isRefusedClaim = (outcome: Outcome): boolean =>
  outcome.type === 'failed' &&
  (outcome.action.type === 'adopt' || outcome.action.type === 'release') &&
  isKubeError(outcome.error, 'Forbidden', 'Invalid')

/** A silent gate says nothing about the pods beside it: they do not wait for it. */
const isHarmless = (outcome: Outcome): boolean => isDone(outcome) || outcome.type === 'pending'

const isDone = (outcome: Outcome): boolean => outcome.type === 'done'

/** The connections for what is urgent are few: what comes in hundreds goes by the others. */
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
    const outcome = await execute(context, action)
    if (outcome.type === 'done' && outcome.pod !== undefined) context.wrote(outcome.pod)
    return outcome
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
      // Without the label nothing of it reaches the cache any more: nobody is to wait for that.
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
    case 'assign':
      if (action.lease.ending !== undefined) await requireUnready(context, action.lease.holder.name)
      if (action.ends) await requireGone(context, action.ends)
      await writeLease(unhurried(context), action.lease, action.version, action.restarts)
      return { type: 'done', action, pod: undefined }
    case 'forget':
      if (action.ends) await requireGone(context, action.ends)
      await deleteLease(context, action.slot, action.lease)
      return { type: 'done', action, pod: undefined }
    case 'serve':
      await serve(context, action)
      return { type: 'done', action, pod: undefined }
    case 'publish':
      await publish(context, action)
      return { type: 'done', action, pod: undefined }
    case 'giveUp':
      await giveUp(context, action)
      return { type: 'done', action, pod: undefined }
    case 'record':
      await record(context, action.revision, action.number)
      return { type: 'done', action, pod: undefined }
    case 'prune':
      await prune(context, action.revision)
      return { type: 'done', action, pod: undefined }
    case 'withdraw':
      await withdraw(context, action)
      return { type: 'done', action, pod: undefined }
    default:
      return action satisfies never
  }
}
