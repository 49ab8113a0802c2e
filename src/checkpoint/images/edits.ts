/** Edits of a dump without which its restore below a placeholder fails or gives wrong results. */
import { readdir } from 'node:fs/promises'
import { CheckpointError } from '../errors.ts'
import { movedWords, movesOf } from './address-words.ts'
import { editImage, readImage } from './image-file.ts'
import { has, type ValueOf } from './message.ts'
import { coreEntry, fileEntry, inventoryEntry, taskKobjIds } from './messages.ts'
import { tasksOf } from './tasks.ts'

/**
 * Makes a restore create a new pid namespace, because pid 1 of the placeholder's is taken. CRIU makes one when the
 * inventory's pid namespace of CRIU itself differs from the tasks', so this gives the inventory a number that no task
 * has. Idempotent. The file keeps its size where that is possible.
 * @returns false when nothing had to be changed.
 * @throws CheckpointError BadImage
 */
export async function newPidNamespace(dir: string): Promise<boolean> {
  const tasks = await taskIds(dir)
  const edited = await editImage(dir, 'inventory.img', 'inventory', inventoryEntry, ({ rootIds }) => {
    if (rootIds === undefined || !has(taskKobjIds, rootIds, 'pidNsId'))
      throw new CheckpointError('BadImage', 'inventory.img does not say which pid namespace CRIU was in')
    if (tasks.every(ids => ids.pidNsId !== rootIds.pidNsId)) return false
    const used = new Set([rootIds, ...tasks].flatMap(ids => Object.values(ids)))
    // Downwards from the largest number that takes one byte: CRIU numbers upwards from 1.
    let unused = 127
    while (used.has(unused)) unused = unused === 1 ? 1_000_000 : unused > 127 ? unused + 1 : unused - 1
    rootIds.pidNsId = unused
    return true
  })
  return edited > 0
}

async function taskIds(dir: string): Promise<ValueOf<typeof taskKobjIds>[]> {
  const names = new Set(await readdir(dir))
  const found: ValueOf<typeof taskKobjIds>[] = []
  for (const { pid } of await tasksOf(dir)) {
    // Tasks that had ended before the dump have neither.
    if (names.has(`ids-${pid}.img`))
      found.push(...(await readImage(dir, `ids-${pid}.img`, 'ids', taskKobjIds)))
    for (const { ids } of await readImage(dir, `core-${pid}.img`, 'core', coreEntry))
      if (ids !== undefined) found.push(ids)
  }
  if (!found.some(ids => has(taskKobjIds, ids, 'pidNsId')))
    throw new CheckpointError('BadImage', 'no task says which pid namespace it was in')
  return found
}

/**
 * Rearms periodic timers that CRIU would restore stopped. While an expiry of a timerfd waits to be read, the kernel
 * shows no time until the next one; CRIU saves that as 0, and 0 means "stopped" when it is set. The timers expire one
 * nanosecond after the restore instead. A timer that really is stopped has no expiry to read.
 * @returns how many timers were changed; 0 when it is done again.
 * @throws CheckpointError BadImage
 */
export function rearmTimers(dir: string): Promise<number> {
  return editImage(dir, 'files.img', 'files', fileEntry, ({ tfd }) => {
    if (tfd === undefined || tfd.ticks === 0n) return false
    const stopped = tfd.vsec === 0n && tfd.vnsec === 0n
    const periodic = tfd.isec > 0n || tfd.insec > 0n
    if (!stopped || !periodic) return false
    tfd.vnsec = 1n
    return true
  })
}

/**
 * Clears the parent-death signal of the first process of the tree. CRIU is its parent during the restore, and then
 * exits. Its real parent is outside of its namespace, so the signal was never meant for that.
 * @returns false when nothing had to be changed.
 * @throws CheckpointError BadImage
 */
export async function forgetParent(dir: string): Promise<boolean> {
  const [root] = await tasksOf(dir)
  if (root === undefined) return false
  const edited = await editImage(dir, `core-${root.pid}.img`, 'core', coreEntry, ({ threadCore }) => {
    if (threadCore === undefined || threadCore.pdeathSig === 0) return false
    threadCore.pdeathSig = 0
    return true
  })
  return edited > 0
}

/**
 * Rebinds sockets from the address of the saved pod to the address of the pod in which they are restored. The peer
 * addresses of connections stay.
 * @returns how many sockets were changed; 0 when it is done again.
 * @throws CheckpointError BadImage
 */
export function moveAddress(dir: string, from: string, to: string): Promise<number> {
  const moves = movesOf(from, to)
  return editImage(dir, 'files.img', 'files', fileEntry, ({ isk }) => {
    // The restore reports a socket that no address of the pod fits.
    const target = isk && movedWords(moves, isk.srcAddr)
    if (isk === undefined || target === undefined) return false
    if (target.every((word, at) => word === isk.srcAddr[at])) return false
    isk.srcAddr = [...target]
    return true
  })
}
