import type { BackupPodSet } from '../../api/backuppodset.ts'
import { keptBy } from '../../api/kept-by.ts'
import { conditionTypes } from '../../api/reasons.ts'
import type { LastFailover, SlotStatus } from '../../api/slot-status.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { type Saved, savedLine, saveNow } from '../checkpoint/checkpoint.ts'
import { slotOf } from '../checkpoint/slots.ts'
import { cureOf } from '../cures.ts'
import { CliError, exitCodes } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { answer } from '../output/answer.ts'
import { age, duration } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld, type World } from '../world.ts'
import { handOver } from './hand-over.ts'
import { awaitSuccessor, otherPrimaryIn, type Successor } from './successor.ts'

export interface PromoteOptions {
  /** Allows a successor that begins without the memory. */
  readonly allowStateLoss?: boolean
  /** Save and delete the primary even where a handover is possible. */
  readonly delete?: boolean
  /** Seconds, for the checkpoint and for the failover each. */
  readonly timeout: number
}

/** A planned failover that is complete. */
export interface Promoted {
  readonly slot: number
  readonly from: string
  readonly to: string
  readonly epoch: number
  /** The primary stayed stopped until the successor continued with its memory: nothing is lost. */
  readonly handedOver: boolean
  /** The checkpoint that was saved before the primary was deleted; absent: none. */
  readonly checkpoint?: Saved
  /**
   * For a handover, from the request until the successor served. For a deletion, from the operator's first sight of it
   * until the successor was on stage, as the operator measured it.
   */
  readonly seconds?: number
  /** Generation that the successor continued with, and its age at that time, in seconds. */
  readonly generation?: number
  readonly stateAge?: number
}

/**
 * Gives a slot to another pod on purpose, and waits until that pod serves. A hot backup that has the memory takes over
 * by a handover. Otherwise the memory is saved, and the primary deleted.
 *
 * @throws CliError with exit code 3 before any change, if memory would be lost; CliError, KubeError.
 */
export async function promote(
  session: Session,
  name: string,
  slot: number,
  options: PromoteOptions,
): Promise<void> {
  const { namespace } = session
  const set = await findSet(session, name)
  const before = slotOf(set, slot)
  mayBeDone(set, before, options)
  const promoted = await followWorld(session, { namespace, set: name }, world =>
    failOver(session, world, set, before, options),
  )
  answer(session, 'Promotion', promoted, () => promotedLine(promoted, keptBy(set)))
}

function promotedLine(
  { slot, from, to, handedOver, seconds, generation, stateAge }: Promoted,
  kept: ReturnType<typeof keptBy>,
): string {
  const time = seconds === undefined ? '' : ` after ${duration(seconds)}`
  const old = stateAge === undefined ? '' : `, ${age(stateAge)} old`
  const state = handedOver
    ? ', with all its memory'
    : kept === 'nothing'
      ? ', with its own memory'
      : generation !== undefined
        ? `, with generation ${generation}${old}`
        : stateAge !== undefined
          ? `, with the saved state${old}`
          : ', without the saved state: see the events of the set'
  return `slot ${slot}: ${from} → ${to} serves${time}${state}`
}

/** @throws CliError that tells the user the first step to take. */
export function mayBeDone(
  set: BackupPodSet,
  slot: SlotStatus,
  { allowStateLoss }: Pick<PromoteOptions, 'allowStateLoss'>,
): void {
  const { name } = set.metadata
  if (set.spec.paused === true)
    throw new CliError(`${name} is paused: no pod would take over`, {
      advice: 'set spec.paused to false first',
      exitCode: exitCodes.refused,
    })
  if (allowStateLoss === true) return
  if (keptBy(set) === 'nothing')
    throw new CliError(`${name} keeps no memory: a successor of slot ${slot.slot} would have only its own`, {
      advice: 'add `checkpoint: {}` to its spec, or use --allow-state-loss to promote without memory',
      exitCode: exitCodes.refused,
    })
  if (slot.protection !== undefined && slot.protection !== 'None') return
  const condition = set.status?.conditions?.find(({ type }) => type === conditionTypes.checkpointReady)
  const why =
    condition === undefined || condition.status === 'True'
      ? ''
      : `; ${condition.reason}: ${condition.message}`
  const cure = condition === undefined ? undefined : cureOf(condition)
  throw new CliError(`no pod could resume with the memory of slot ${slot.slot}${why}`, {
    advice: `${cure ?? 'wait until `kubectl understudy status` shows a protection'}; or use --allow-state-loss to lose it`,
    exitCode: exitCodes.refused,
  })
}

/** @throws CliError, KubeError. */
export async function failOver(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  before: SlotStatus,
  options: PromoteOptions,
): Promise<Promoted> {
  const { terminal, clock } = session
  const { slot, pod: name } = before
  const timeoutMs = options.timeout * 1000
  const primary = world.now.pods.find(({ metadata }) => metadata.name === name)
  if (primary === undefined)
    throw new CliError(`slot ${slot}: its primary ${name} no longer exists`, {
      advice: 'try again: a successor is taking over',
    })
  const isHot = before.protection === 'Frozen' || before.protection === 'Staged'
  const isHandover = keptBy(set) === 'memory' && isHot && options.delete !== true
  const startedAt = clock.monotonic()
  const saved =
    keptBy(set) === 'memory' && !isHandover ? await save(session, world, set, before, options) : undefined
  if (saved !== undefined) terminal.err(savedLine(saved))
  const after = isHandover
    ? await handOver(session, world, set, before, primary, timeoutMs)
    : await deleteAndFollow(session, world, set, before, primary, timeoutMs)
  const facts = factsOf(after, name) ?? (isHandover ? undefined : await toldLater(world, set, before))
  // A handover records no failover. A failover in between had only the generation that was saved before.
  const handedOver = isHandover && facts === undefined
  const seconds = handedOver ? (clock.monotonic() - startedAt) / 1000 : facts?.seconds
  return {
    slot,
    from: name,
    to: after.now.pod,
    epoch: after.now.epoch,
    handedOver,
    ...(saved === undefined ? {} : { checkpoint: saved }),
    ...(seconds === undefined ? {} : { seconds }),
    ...(facts?.generation === undefined ? {} : { generation: facts.generation }),
    ...(facts?.stateAge === undefined ? {} : { stateAge: facts.stateAge }),
  }
}

/** The set's last failover has more details than the slot's, but may already be that of another slot. */
const factsOf = ({ now, lastFailover }: Successor, from: string): Partial<LastFailover> | undefined =>
  [lastFailover?.slot === now.slot ? lastFailover : undefined, now.lastFailover].find(it => it?.from === from)

/** The status names a successor that serves before it tells how that took over: the command waits for so long, ms. */
const toldWithinMs = 2_000

async function toldLater(
  world: FollowedWorld,
  set: BackupPodSet,
  { slot, pod }: SlotStatus,
): Promise<Partial<LastFailover> | undefined> {
  const told = (it: World) => {
    const successor = otherPrimaryIn(it, set, slot, pod)
    return successor && factsOf(successor, pod)
  }
  const late = () => new CliError('the status does not tell of the failover')
  return world.until(told, toldWithinMs, late).catch((error: unknown) => {
    // The operator has ended before it could tell it, or a later failover has taken its place.
    if (!(error instanceof CliError)) throw error
    return undefined
  })
}

/** @throws CliError with exit code 4 when no successor serves in time; KubeError. */
export async function deleteAndFollow(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  current: SlotStatus,
  primary: Pod,
  timeoutMs: number,
): Promise<Successor> {
  const { api, call, namespace } = session
  const { slot, pod: name } = current
  try {
    await api.delete(pods, { namespace, name }, { uid: primary.metadata.uid }, call)
  } catch (error) {
    // Another client was faster: the failover is the same.
    if (!isKubeError(error, 'NotFound')) throw error
  }
  return awaitSuccessor(session, world, set, current, {
    how: 'delete',
    timeoutMs,
    late: () =>
      new CliError(`slot ${slot}: ${name} is deleted, and no successor serves yet`, {
        advice: `follow the failover with \`kubectl understudy status ${set.metadata.name} -w\``,
        exitCode: exitCodes.late,
      }),
  })
}

/** @throws CliError with exit code 3 when the memory cannot be saved and must not be lost. */
async function save(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  slot: SlotStatus,
  { allowStateLoss, timeout }: PromoteOptions,
): Promise<Saved | undefined> {
  try {
    return await saveNow(session, world, set, slot, { wait: true, timeoutMs: timeout * 1000 })
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    if (allowStateLoss === true) {
      session.terminal.err(`not saved: ${error.message}`)
      return undefined
    }
    throw new CliError(`nothing was done: ${error.message}`, {
      advice: `${error.advice ?? 'read the log of the agents'}; or use --allow-state-loss to lose the unsaved memory`,
      exitCode: exitCodes.refused,
    })
  }
}
