import { statfs } from 'node:fs/promises'
import { isGone } from './discover/process.ts'

/** Of Linux' magic numbers of file systems. */
const tmpfs = 0x01021994

/** Whether what lies there lies in memory; nothing does where there is nothing. */
export async function isTmpfs(directory: string): Promise<boolean> {
  try {
    return (await statfs(directory)).type === tmpfs
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}
