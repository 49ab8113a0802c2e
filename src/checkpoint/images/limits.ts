/** What the images say of limits and precedence of tasks. CRIU has the right to set all of them. */
import { CheckpointError } from '../errors.ts'
import { editImage, readSingle } from './image-file.ts'
import { has, make } from './message.ts'
import { coreEntry, rlimitEntry, taskCoreEntry } from './messages.ts'
import { tasksOf } from './tasks.ts'

export interface Limit {
  readonly soft: bigint
  readonly hard: bigint
}

/** Of a process; where it is one of its threads that differs, of that. */
export interface Precedence {
  /** -20 comes first. */
  readonly nice: number
  /** SCHED_OTHER and so on. */
  readonly policy: number
}

/** No limit: what the kernel and CRIU write for it. */
export const unlimited = 0xffff_ffff_ffff_ffffn
/** RLIMIT_RTTIME is the last one. */
const mostLimits = 16

/** One for each thread. @throws CheckpointError BadImage */
export async function precedenceOf(dir: string): Promise<Precedence[]> {
  const found: Precedence[] = []
  for (const { pid, threads } of await tasksOf(dir))
    for (const tid of new Set([pid, ...threads])) {
      const { threadCore } = await readSingle(dir, `core-${tid}.img`, 'core', coreEntry)
      if (threadCore !== undefined) found.push({ nice: threadCore.nice, policy: threadCore.policy })
    }
  return found
}

/**
 * Takes from tasks what the container has less of: nodes differ in the limits that they give, and in how soon they kill
 * for want of memory.
 * @param limits by their numbers, as RLIMIT_CPU is 0.
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
      const all = tc.rlimits?.limits ?? []
      if (all.length > mostLimits) throw new CheckpointError('BadImage', `${name} has ${all.length} limits`)
      const lowered = all.map(({ soft, hard }, at) => {
        const own = limits[at] ?? { soft: unlimited, hard: unlimited }
        const most = lower(hard, own.hard)
        return { soft: lower(soft, most), hard: most }
      })
      const differs = lowered.some(({ soft, hard }, at) => soft !== all[at]?.soft || hard !== all[at]?.hard)
      // What CRIU is not told a task takes over from CRIU.
      const isSafe = has(taskCoreEntry, tc, 'oomScore') && tc.oomScore >= oomScore
      if (!differs && isSafe) return false
      if (tc.rlimits !== undefined && differs)
        tc.rlimits.limits = lowered.map(limit => make(rlimitEntry, limit))
      if (!isSafe) tc.oomScore = oomScore
      return true
    })
  }
  return edited
}

const lower = (one: bigint, other: bigint): bigint => [one, other].reduce((a, b) => (b < a ? b : a))
