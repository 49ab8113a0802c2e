import { isAgentError } from '../../api/agent-errors.ts'
import type { ProcessRef } from '../container/process.ts'
import { childrenOf, inBatches, listIfThere, type ProcFs, statusOf, treeOf } from '../container/process.ts'
import type { SentinelClient } from '../sentinel/client.ts'

/**
 * Returns the children of a container's first process that have their own pid namespace: restored processes. Below a
 * `hold` without an app, no other process has one.
 */
export async function nestedChildren(
  fs: ProcFs,
  hold: { readonly pid: number },
): Promise<{ pid: number; pidBelowHold: number }[]> {
  const depth = (await statusOf(fs, hold.pid))?.nsPids.length ?? 0
  const found = await Promise.all(
    (await childrenOf(fs, hold.pid)).map(async pid => ({
      pid,
      nsPids: (await statusOf(fs, pid))?.nsPids ?? [],
    })),
  )
  return found.flatMap(({ pid, nsPids }) => {
    const pidBelowHold = nsPids[depth - 1]
    return depth > 0 && nsPids.length > depth && pidBelowHold !== undefined ? [{ pid, pidBelowHold }] : []
  })
}

/** Kills a process and all its descendants. Succeeds if the process is gone already. */
export async function endTree(
  sentinel: Pick<SentinelClient, 'treeKill'>,
  process: ProcessRef,
): Promise<void> {
  try {
    await sentinel.treeKill(process)
  } catch (error) {
    if (!isAgentError(error, 'ProcessGone')) throw error
  }
}

/** Returns the child of a container's first process that has this pid in its namespace. */
export async function childBelowHold(
  fs: ProcFs,
  hold: { readonly pid: number },
  pidBelowHold: number,
): Promise<number | undefined> {
  const depth = (await statusOf(fs, hold.pid))?.nsPids.length ?? 0
  for (const pid of await childrenOf(fs, hold.pid))
    if ((await statusOf(fs, pid))?.nsPids[depth - 1] === pidBelowHold) return pid
  return undefined
}

/** Returns every thread of the tree, as each has its own rights. */
export async function threadsOf(fs: ProcFs, root: number): Promise<number[]> {
  const lists = await inBatches(await treeOf(fs, root), pid => listIfThere(`${fs.proc}/${pid}/task`))
  return lists.flat().map(Number)
}

/** Returns the processes of the tree that are not stopped. Zombies do not count, as they run nothing. */
export async function runningOf(fs: ProcFs, root: number): Promise<number[]> {
  const running: number[] = []
  for (const pid of await treeOf(fs, root)) {
    const status = await statusOf(fs, pid)
    if (status !== undefined && !['T', 't', 'Z', 'X'].includes(status.state)) running.push(pid)
  }
  return running
}
