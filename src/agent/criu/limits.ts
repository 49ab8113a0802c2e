/** Resource limits and scheduling precedence. Restored processes may have no more than their container. */
import type { Limit, Precedence } from '../../checkpoint/images/limits.ts'
import { unlimited } from '../../checkpoint/images/limits.ts'
import { type ProcFs, readIfThere } from '../container/process.ts'
import { type Rights, reachableCapabilities } from './rights.ts'

export interface Limits extends Precedence {
  /** By number: RLIMIT_CPU is 0. */
  readonly limits: readonly Limit[]
  /** The OOM killer chooses processes with a higher score first. */
  readonly oomScore: number
}

/** Returns the limits of a process or a thread; undefined if it is gone. */
export async function livingLimits(fs: ProcFs, task: number): Promise<Limits | undefined> {
  const [limits, score, stat] = await Promise.all(
    ['limits', 'oom_score_adj', 'stat'].map(name => readIfThere(`${fs.proc}/${task}/${name}`)),
  )
  if (limits === undefined || score === undefined || stat === undefined) return undefined
  return { limits: parseLimits(limits), oomScore: Number(score.trim()), ...parsePrecedence(stat) }
}

/** Parses lines in the order of their numbers, below a title line: `Max open files   1024   4096   files`. */
export function parseLimits(text: string): Limit[] {
  const value = (word: string) => (word === 'unlimited' ? unlimited : BigInt(word))
  return [...text.matchAll(/^Max .*? {2,}(\d+|unlimited) +(\d+|unlimited)/gm)].map(
    ([, soft = '0', hard = '0']) => ({ soft: value(soft), hard: value(hard) }),
  )
}

/** Parses fields 19 and 41; the name in field 2 may contain any character. */
export function parsePrecedence(stat: string): Precedence {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { nice: Number(fields[16]), policy: Number(fields[38]) }
}

const CAP_SYS_NICE = 1n << 23n
const CAP_SYS_RESOURCE = 1n << 24n
const RLIMIT_NICE = 13
const RLIMIT_RTPRIO = 14
/** SCHED_OTHER, SCHED_BATCH and SCHED_IDLE; the other policies take precedence over every process of the node. */
const ordinary = [0, 3, 5]

/** Returns one line for each precedence that the container could not gain by itself. */
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

/** True if the container may raise its own limits: then any limits are fine. */
export const mayRaiseLimits = (rights: Rights): boolean =>
  (reachableCapabilities(rights) & CAP_SYS_RESOURCE) !== 0n

/** Does the same for a living process, and checks the limits that lowerLimits sets in images beforehand. */
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
