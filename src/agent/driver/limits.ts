/** How much processes may have, and before whom they come: restored ones no more than their container. */
import type { Limit, Precedence } from '../../checkpoint/images/limits.ts'
import { unlimited } from '../../checkpoint/images/limits.ts'
import { type ProcFs, readIfThere } from '../discover/process.ts'
import { type Rights, reachableCapabilities } from './rights.ts'

export interface Limits extends Precedence {
  /** By their numbers, as RLIMIT_CPU is 0. */
  readonly limits: readonly Limit[]
  /** The higher the sooner it is killed for want of memory. */
  readonly oomScore: number
}

/** Of a process or a thread; undefined: it is gone. */
export async function livingLimits(fs: ProcFs, task: number): Promise<Limits | undefined> {
  const [limits, score, stat] = await Promise.all(
    ['limits', 'oom_score_adj', 'stat'].map(name => readIfThere(`${fs.proc}/${task}/${name}`)),
  )
  if (limits === undefined || score === undefined || stat === undefined) return undefined
  return { limits: parseLimits(limits), oomScore: Number(score.trim()), ...parsePrecedence(stat) }
}

/** Lines in the order of their numbers, below one of titles: `Max open files   1024   4096   files`. */
export function parseLimits(text: string): Limit[] {
  const value = (word: string) => (word === 'unlimited' ? unlimited : BigInt(word))
  return [...text.matchAll(/^Max .*? {2,}(\d+|unlimited) +(\d+|unlimited)/gm)].map(
    ([, soft = '0', hard = '0']) => ({ soft: value(soft), hard: value(hard) }),
  )
}

/** Fields 19 and 41; the name in the second may hold anything. */
export function parsePrecedence(stat: string): Precedence {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { nice: Number(fields[16]), policy: Number(fields[38]) }
}

const CAP_SYS_NICE = 1n << 23n
const CAP_SYS_RESOURCE = 1n << 24n
const RLIMIT_NICE = 13
const RLIMIT_RTPRIO = 14
/** SCHED_OTHER, SCHED_BATCH and SCHED_IDLE; the others come before every process of the node. */
const ordinary = [0, 3, 5]

/** One line each; empty: nothing that the container could not come to by itself. */
export function beyondPrecedence(held: Precedence, holder: Limits, rights: Rights): string[] {
  if ((reachableCapabilities(rights) & CAP_SYS_NICE) !== 0n) return []
  const limitOf = (number: number) => holder.limits[number]?.hard ?? 0n
  const lowest = Math.min(holder.nice, 20 - Number(limitOf(RLIMIT_NICE) > 40n ? 40n : limitOf(RLIMIT_NICE)))
  return [
    ...(held.nice < lowest ? [`nice ${held.nice} instead of ${holder.nice}`] : []),
    ...(ordinary.includes(held.policy) || held.policy === holder.policy || limitOf(RLIMIT_RTPRIO) > 0n
      ? []
      : [`scheduling policy ${held.policy}`]),
  ]
}

/** Whether the container may raise its own limits, so that any are fine. */
export const mayRaiseLimits = (rights: Rights): boolean =>
  (reachableCapabilities(rights) & CAP_SYS_RESOURCE) !== 0n

/** The same of a living process, with the limits that images are given before: see lowerLimits. */
export function beyondLimits(held: Limits, holder: Limits, rights: Rights): string[] {
  const mayRaise = mayRaiseLimits(rights)
  const higher = held.limits.flatMap(({ hard }, at) =>
    hard > (holder.limits[at]?.hard ?? unlimited) ? [`limit ${at} of ${hard}`] : [],
  )
  return [
    ...beyondPrecedence(held, holder, rights),
    ...(mayRaise ? [] : higher),
    ...(mayRaise || held.oomScore >= holder.oomScore ? [] : [`oom_score_adj ${held.oomScore}`]),
  ]
}
