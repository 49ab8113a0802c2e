/** One round: steady state, faults, healing, full protection, and what the checker says. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../src/kube/errors.ts'
import { protectionMs } from './bounds.ts'
import { check, type Verdict } from './check/check.ts'
import type { Crowd } from './client/crowd.ts'
import { fencedSince } from './fenced.ts'
import { type History, now } from './history.ts'
import type { Journal } from './journal.ts'
import type { Blow, Nemesis } from './nemesis/nemesis.ts'
import { renewParts } from './nemesis/parts.ts'
import { lacksProtection, untilProtected } from './protection.ts'
import { type Random, randomOf } from './random.ts'
import { primariesOf, type Stage, slotCount } from './stage.ts'
import { until } from './until.ts'

/** Traffic before the first fault, so that the rules have something to compare with. */
const steadyMs = 4_000
/** Traffic afterwards: calls that hang are over, and an old primary would have answered. */
const afterMs = 4_000
/** Faults of one round begin within this time. */
const spreadMs = 4_000

export interface Round {
  readonly nemeses: readonly Nemesis[]
  readonly random: Random
  readonly say: (text: string) => void
}

export interface Played extends Verdict {
  readonly history: History
}

export async function play(
  stage: Stage,
  journal: Journal,
  crowd: Crowd,
  { nemeses, random, say }: Round,
): Promise<Played> {
  const { signal } = stage
  const before = Date.now()
  await renewParts(stage)
  await untilProtected(stage, before)
  crowd.follow()
  journal.turn()
  await sleep(steadyMs, undefined, { signal })
  const begun = Date.now()
  const blows: Blow[] = []
  const spread = Math.min(...nemeses.map(({ othersWithinMs = spreadMs }) => othersWithinMs))
  const offsets = nemeses.map((nemesis, index) => {
    const leads = nemeses.filter(other => other !== nemesis).map(({ leadMs = 0 }) => leadMs)
    return (index === 0 ? 0 : random.between(0, spread)) + Math.max(0, ...leads)
  })
  // Each draws from a source of its own: what one of them waits for does not change what another draws.
  const strikes = nemeses.map((nemesis, index) => ({
    nemesis,
    random: randomOf(random.below(2 ** 32)),
    offsetMs: offsets[index] ?? 0,
  }))
  const outcomes = await Promise.allSettled(
    strikes.map(async each => {
      await sleep(each.offsetMs, undefined, { signal })
      blows.push(await strike(stage, journal, each.nemesis, each.random, say))
    }),
  )
  journal.tell({ type: 'healed', at: now() })
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  await recover(stage, journal, crowd, say)
  await sleep(afterMs, undefined, { signal })
  for (const { after } of blows) for (const entry of (await after?.()) ?? []) journal.tell(entry)
  for (const entry of await fencedSince(stage, begun)) journal.tell(entry)
  journal.tell({ type: 'end', at: now() })
  const history = journal.history()
  return { history, ...check(history) }
}

/** A fault for as long as it lasts. Heals also if the drill is interrupted. */
async function strike(
  stage: Stage,
  journal: Journal,
  nemesis: Nemesis,
  random: Random,
  say: (text: string) => void,
): Promise<Blow> {
  await until(async () => primariesOf(stage).length === slotCount, 30_000, stage.signal)
  const blow = await nemesis.aim(stage, random)
  say(`${nemesis.name}: ${blow.target}${blow.holdMs > 0 ? ` for ${(blow.holdMs / 1000).toFixed(1)} s` : ''}`)
  journal.tell(faultOf(nemesis, blow))
  try {
    await blow.strike()
    await sleep(blow.holdMs, undefined, { signal: stage.signal })
  } finally {
    await blow.heal()
  }
  return blow
}

const faultOf = (nemesis: Nemesis, blow: Blow) => {
  const { target, slots, pods, mayPromote, silences, mayAnswerEmpty, unsaved, outageMs, fencedMs } = blow
  const fault = {
    ...{ target, slots, pods, mayPromote, silences },
    ...{ mayAnswerEmpty, unsaved, outageMs, fencedMs },
  }
  return { type: 'fault', at: now(), nemesis: nemesis.name, ...fault } as const
}

/** Waits for full protection with memory from after the faults, and notes whether it came in time. */
async function recover(
  stage: Stage,
  journal: Journal,
  crowd: Crowd,
  say: (text: string) => void,
): Promise<void> {
  const since = Date.now()
  const begun = now()
  let lacks: string | undefined = 'unknown'
  await until(
    async () => {
      crowd.follow()
      const before = lacks
      lacks = await lacksProtection(stage, since).catch(messageOf)
      if (lacks !== before && lacks !== undefined) say(`not protected yet: ${lacks}`)
      return lacks === undefined
    },
    protectionMs,
    stage.signal,
  ).catch((error: unknown) => {
    stage.signal.throwIfAborted()
    if (lacks === undefined) throw error
  })
  const at = now()
  const isFull = lacks === undefined
  journal.tell({ type: 'protection', at, isFull, limitMs: protectionMs, says: lacks ?? '' })
  if (isFull) say(`protected again after ${((at - begun) / 1000).toFixed(1)} s`)
}
