import type { BackupPodSet, LastFailover, SlotStatus } from '../../api/backuppodset.ts'
import { conditionTypes } from '../../api/reasons.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { type Saved, savedLine, saveNow } from '../checkpoint/checkpoint.ts'
import { keptBy, slotOf } from '../checkpoint/slots.ts'
import { cureOf } from '../cures.ts'
import { CliError, exitCodes } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { age, duration } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld } from '../world.ts'
import { handOver } from './hand-over.ts'
import { type Successor, successorIn } from './successor.ts'

export interface PromoteOptions {
  /** Also where the successor would begin without the memory. */
  readonly allowStateLoss?: boolean
  /** Save and delete the primary, also where it could be handed over. */
  readonly delete?: boolean
  /** Seconds, for each: the checkpoint, and the failover. */
  readonly timeout: number
}

/** A planned failover that has come to its end. */
export interface Promoted {
  readonly slot: number
  readonly from: string
  readonly to: string
  readonly epoch: number
  /** Its primary stood still until the successor went on: nothing is lost. */
  readonly handedOver: boolean
  /** What was saved for it before its primary was deleted; absent: nothing was. */
  readonly checkpoint?: Saved
  /**
   * From the wish until the successor served; of a deletion from its first sight until the successor was on stage, as the
   * operator measured it.
   */
  readonly seconds?: number
  /** Generation that the successor has gone on with, and how old it was then, in seconds. */
  readonly generation?: number
  readonly stateAge?: number
}

/**
 * Gives a slot to another pod on purpose, and follows until that one serves. A hot backup that has its memory takes it over
 * standing still; for others it is saved, and its primary deleted.
 *
 * @throws CliError with exit code 3 before anything has been done, if memory would be lost; CliError, KubeError.
 */
export async function promote(
  session: Session,
  name: string,
  slot: number,
  options: PromoteOptions,
): Promise<void> {
  const { terminal, output, namespace } = session
  const set = await findSet(session, name)
  const before = slotOf(set, slot)
  mayBeDone(set, before, options)
  const promoted = await followWorld(session, { namespace, set: name }, world =>
    failOver(session, world, set, before, options),
  )
  terminal.out(
    output === 'json' ? JSON.stringify(promoted, undefined, 2) : promotedLine(promoted, keptBy(set)),
  )
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
      ? ', with a memory of its own'
      : generation !== undefined
        ? `, with generation ${generation}${old}`
        : stateAge !== undefined
          ? `, with the state that was kept${old}`
          : ', without what was kept: see the events of the set'
  return `slot ${slot}: ${from} → ${to} serves${time}${state}`
}

/** @throws CliError that says what to do first. */
function mayBeDone(set: BackupPodSet, slot: SlotStatus, { allowStateLoss }: PromoteOptions): void {
  const { name } = set.metadata
  if (set.spec.paused === true)
    throw new CliError(`${name} is paused: nobody would take over`, {
      advice: 'set spec.paused to false first',
      exitCode: exitCodes.refused,
    })
  if (allowStateLoss === true) return
  if (keptBy(set) === 'nothing')
    throw new CliError(`${name} keeps no memory: a successor of slot ${slot.slot} would go on with its own`, {
      advice: '`checkpoint: {}` in its spec asks for it; --allow-state-loss does it without',
      exitCode: exitCodes.refused,
    })
  if (slot.protection !== undefined && slot.protection !== 'None') return
  const condition = set.status?.conditions?.find(({ type }) => type === conditionTypes.checkpointReady)
  const why =
    condition === undefined || condition.status === 'True'
      ? ''
      : `; ${condition.reason}: ${condition.message}`
  const cure = condition === undefined ? undefined : cureOf(condition)
  throw new CliError(`nobody could go on with the memory of slot ${slot.slot}${why}`, {
    advice: `${cure ?? 'wait until `kubectl understudy status` shows a protection'}; or lose it: --allow-state-loss`,
    exitCode: exitCodes.refused,
  })
}

async function failOver(
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
    throw new CliError(`slot ${slot}: its primary ${name} is not there any more`, {
      advice: 'try again: a successor is on its way',
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
  // The set's last one says more than the slot's, and may be that of another slot already.
  const facts = [
    after.lastFailover?.slot === slot ? after.lastFailover : undefined,
    after.now.lastFailover as Partial<LastFailover> | undefined,
  ].find(it => it?.from === name)
  // A handover is no failover; one that came in between had only what was saved before.
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

/** @throws CliError with exit code 4 when nobody serves in its place in time; KubeError. */
async function deleteAndFollow(
  { api, call, namespace }: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  { slot, pod: name }: SlotStatus,
  primary: Pod,
  timeoutMs: number,
): Promise<Successor> {
  try {
    await api.delete(pods, { namespace, name }, { uid: primary.metadata.uid }, call)
  } catch (error) {
    // Somebody else was faster: the failover is the same.
    if (!isKubeError(error, 'NotFound')) throw error
  }
  return world.until(
    now => successorIn(now, set, slot, name),
    timeoutMs,
    () =>
      new CliError(`slot ${slot}: ${name} is deleted, and nobody serves in its place yet`, {
        advice: `\`kubectl understudy status ${set.metadata.name} -w\` shows how it goes on`,
        exitCode: exitCodes.late,
      }),
  )
}

/** @throws CliError with exit code 3 when it cannot be saved and must not be lost. */
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
      advice: `${error.advice ?? 'see the log of the agents'}; or lose what is not saved: --allow-state-loss`,
      exitCode: exitCodes.refused,
    })
  }
}
