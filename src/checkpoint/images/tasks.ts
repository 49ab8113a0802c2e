import { CheckpointError } from '../errors.ts'
import { readImage } from './image-file.ts'
import { pstreeEntry } from './messages.ts'

/** A task of a dump. All numbers are those of the pid namespace it was dumped in. */
export interface Task {
  readonly pid: number
  /** 0: the root of the dumped tree. */
  readonly parent: number
  readonly group: number
  readonly session: number
  /** All threads, including the leader (`pid`). */
  readonly threads: readonly number[]
}

/** The process tree of a dump, parents before their children. @throws CheckpointError BadImage */
export async function tasksOf(dir: string): Promise<readonly Task[]> {
  const entries = await readImage(dir, 'pstree.img', 'pstree', pstreeEntry)
  if (entries.length === 0) throw new CheckpointError('BadImage', 'pstree.img names no task')
  return entries.map(({ pid, ppid, pgid, sid, threads }) => ({
    pid,
    parent: ppid,
    group: pgid,
    session: sid,
    threads: [...threads],
  }))
}
