/** Limits and scheduling precedence of tasks in the images. CRIU has the right to set all of them. */
import { CheckpointError } from '../errors.ts'
import { editImage, readSingle } from './image-file.ts'
import { has, make } from './message.ts'
import { coreEntry, rlimitEntry, taskCoreEntry } from './messages.ts'
import { tasksOf } from './tasks.ts'

export interface Limit {
  readonly soft: bigint
  readonly hard: bigint
}

/** Scheduling precedence of a process or a thread. */
export interface Precedence {
  /** -20 is the most favoured. */
  readonly nice: number
  /** SCHED_OTHER and so on. */
  readonly policy: number
}

/** No limit, as the kernel and CRIU write it. */
export const unlimited = 0xffff_ffff_ffff_ffffn
/** RLIMIT_RTTIME is the last one. */
const mostLimits = 16

/** One for each thread. @throws CheckpointError BadImage */
export async function precedenceOf(dir: string): Promise<Precedence[]> {
  const found: Precedence[] = []
  for (const { pid, threads } of await tasksOf(dir))
    for (const tid of new Set([pid, ...threads])) {
      const { threadCore } = await readSingle(dir, `core-${tid}.img`, 'core', coreEntry)
      if (threadCore !== undefined) found.push({ nice: threadCore.schedNice, policy: threadCore.schedPolicy })
    }
  return found
}

/**
 * Lowers the limits of tasks to those of the container, and raises their OOM score to at least the container's. Nodes
 * differ in the limits that they set, and in how soon they kill a process when memory runs out.
 * @param limits by their numbers; RLIMIT_CPU is 0.
 * @returns how many tasks were changed; 0 when it is done again.
 * @throws CheckpointError BadImage
 */
export async function lowerLimits(
  dir: string,
  { limits, oomScore }: { readonly limits: readonly Limit[]; readonly oomScore: number },
): Promise<number> {
  let edited = 0
  for (const { pid } of await tasksOf(dir)) {
    const name = `core-${pid}.img`
    edited += await editImage(dir, name, 'core', coreEntry, ({ tc }) => {
      if (tc === undefined) return false
      const all = tc.rlimits?.rlimits ?? []
      if (all.length > mostLimits) throw new CheckpointError('BadImage', `${name} has ${all.length} limits`)
      const lowered = all.map(({ cur, max }, at) => {
        const most = lower(max, limits[at]?.hard ?? unlimited)
        return { cur: lower(cur, most), max: most }
      })
      const differs = lowered.some(({ cur, max }, at) => cur !== all[at]?.cur || max !== all[at]?.max)
      // A task without an OOM score in its image would inherit CRIU's own.
      const isSafe = has(taskCoreEntry, tc, 'oomScoreAdj') && tc.oomScoreAdj >= oomScore
      if (!differs && isSafe) return false
      if (tc.rlimits !== undefined && differs)
        tc.rlimits.rlimits = lowered.map(limit => make(rlimitEntry, limit))
      if (!isSafe) tc.oomScoreAdj = oomScore
      return true
    })
  }
  return edited
}

const lower = (one: bigint, other: bigint): bigint => [one, other].reduce((a, b) => (b < a ? b : a))
