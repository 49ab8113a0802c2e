import type { BackupPodSet } from '../../api/backuppodset.ts'
import { annotations } from '../../api/labels.ts'
import type { LastFailover, OriginOfMemory, SlotStatus } from '../../api/slot-status.ts'
import { slotOf } from '../checkpoint/slots.ts'
import { CliError, exitCodes } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { answer } from '../output/answer.ts'
import { age, duration } from '../output/quantities.ts'
import { deleteAndFollow, mayBeDone } from '../promote/promote.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld } from '../world.ts'
import { routeTo } from './route.ts'

export interface DrillOptions {
  /** Absent: any slot that is protected. */
  readonly slot?: number
  /** Seconds. */
  readonly timeout: number
}

/** A failover that was caused on purpose, as this program saw it. Times are seconds from the deletion on. */
export interface Drilled {
  readonly slot: number
  readonly from: string
  readonly to: string
  /** Node of the successor. */
  readonly node?: string
  readonly epoch: number
  /** Until the set's status has shown the successor as ready. */
  readonly servedSeconds: number
  /** Until an EndpointSlice of the set has led to it; absent: the set has none, or this user may not read them. */
  readonly routedSeconds?: number
  /** From the operator's first sight of the deletion until the successor was on stage. */
  readonly failoverSeconds?: number
  readonly how?: OriginOfMemory
  /** Age of the memory with which it continued, seconds. */
  readonly stateAge?: number
}

/**
 * Deletes one primary of a set that allows drills, and measures how its slot continues. It has the user's rights only.
 *
 * @throws CliError with exit code 3 before any change, if the set does not allow it or has no protection; with exit code
 * 4 if no successor serves in time; KubeError.
 */
export async function drill(session: Session, name: string, options: DrillOptions): Promise<void> {
  const drilled = await drillSet(session, name, options)
  answer(session, 'Drill', drilled, () => drillText(drilled))
}

/** Does what `drill` does, and returns what it saw. @throws like `drill` */
export async function drillSet(session: Session, name: string, options: DrillOptions): Promise<Drilled> {
  const { namespace } = session
  const set = await findSet(session, name)
  isAllowed(set)
  const slot = chosen(session, set, options)
  mayBeDone(set, slot, {})
  return followWorld(session, { namespace, set: name }, world => perform(session, world, set, slot, options))
}

function isAllowed({ metadata: { name, annotations: given } }: BackupPodSet): void {
  if (given?.[annotations.drill] === 'allowed') return
  throw new CliError(`${name} does not allow drills: changes since its last save would be lost`, {
    advice: `allow them with \`kubectl annotate backuppodset ${name} ${annotations.drill}=allowed\``,
    exitCode: exitCodes.refused,
  })
}

function chosen({ random }: Session, set: BackupPodSet, { slot }: DrillOptions): SlotStatus {
  if (slot !== undefined) return slotOf(set, slot)
  const slots = set.status?.slots ?? []
  const ready = slots.filter(({ ready, protection }) => ready && protection !== 'None')
  const found = ready[Math.floor(random.next() * ready.length)] ?? slots[0]
  if (found === undefined)
    throw new CliError(`${set.metadata.name} has no slot yet`, {
      advice: 'wait until `kubectl understudy status` shows a primary',
    })
  return found
}

/** @throws CliError, KubeError. */
export async function perform(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  before: SlotStatus,
  { timeout }: Pick<DrillOptions, 'timeout'>,
): Promise<Drilled> {
  const { clock } = session
  const { slot, pod: from } = before
  const primary = world.now.pods.find(({ metadata }) => metadata.name === from)
  if (primary === undefined)
    throw new CliError(`slot ${slot}: its primary ${from} no longer exists`, {
      advice: 'try again: a successor is taking over',
    })
  const begun = clock.monotonic()
  const since = (at: number) => (at - begun) / 1000
  const over = new AbortController()
  const routing = routeTo(session, world, { set, slot, before: primary.metadata.uid, until: over.signal })
  try {
    const { now } = await deleteAndFollow(session, world, set, before, primary, timeout * 1000)
    const servedSeconds = since(clock.monotonic())
    const routed = await routing.within(routedMs)
    const facts = await world
      .until(
        ({ sets }) => recordOf(sets, set, slot, from),
        recordMs,
        () => new CliError('no record'),
      )
      .catch(() => undefined)
    return {
      ...{ slot, from, to: now.pod, epoch: now.epoch, servedSeconds },
      ...(now.node === undefined ? {} : { node: now.node }),
      ...(routed === undefined ? {} : { routedSeconds: since(routed) }),
      ...(facts?.seconds === undefined ? {} : { failoverSeconds: facts.seconds }),
      ...(facts?.how === undefined ? {} : { how: facts.how }),
      ...(facts?.stateAge === undefined ? {} : { stateAge: facts.stateAge }),
    }
  } finally {
    over.abort()
  }
}

/** Returns the set's record of this failover: its last one has more details than that of the slot. */
function recordOf(
  sets: readonly BackupPodSet[],
  { metadata: { name } }: BackupPodSet,
  slot: number,
  from: string,
): Partial<LastFailover> | undefined {
  const status = sets.find(({ metadata }) => metadata.name === name)?.status
  const ofSlot: Partial<LastFailover> | undefined = status?.slots?.find(
    each => each.slot === slot,
  )?.lastFailover
  return [status?.lastFailover, ofSlot].find(record => record?.from === from)
}

/** The operator writes the record after the takeover. */
const recordMs = 3_000
/** The operator writes endpoints and status at about the same time. */
const routedMs = 5_000

export const drillText = (drilled: Drilled): string =>
  [
    `slot ${drilled.slot}: ${drilled.from} was deleted → ${drilled.to}${drilled.node === undefined ? '' : ` on ${drilled.node}`} (epoch ${drilled.epoch})`,
    `  serves after   ${duration(drilled.servedSeconds)}`,
    `  endpoints      ${drilled.routedSeconds === undefined ? 'not seen: no Service of the set, or no right to read EndpointSlices' : `after ${duration(drilled.routedSeconds)}`}`,
    ...(drilled.failoverSeconds === undefined
      ? []
      : [`  takeover       ${duration(drilled.failoverSeconds)}, as the operator measured it`]),
    ...(drilled.how === undefined
      ? []
      : [
          `  memory         ${drilled.how}${drilled.stateAge === undefined ? '' : `, ${age(drilled.stateAge)} old`}`,
        ]),
  ].join('\n')
