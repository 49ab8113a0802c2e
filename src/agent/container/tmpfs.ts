import { statfs } from 'node:fs/promises'
import { isGone } from './process.ts'

/** Magic number of tmpfs in Linux. */
const tmpfs = 0x01021994

/** Whether the directory is in memory; false if it does not exist. */
export async function isTmpfs(directory: string): Promise<boolean> {
  try {
    return (await statfs(directory)).type === tmpfs
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}
