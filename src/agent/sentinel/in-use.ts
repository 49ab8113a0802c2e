import { readdir, readlink } from 'node:fs/promises'
import { isGone, type ProcFs } from '../container/process.ts'

/**
 * Returns the paths of programs below a directory that processes of this node run, such as an earlier agent's sentinel.
 */
export async function programsInUse(
  { proc }: Pick<ProcFs, 'proc'>,
  below: string,
): Promise<readonly string[]> {
  const found = new Set<string>()
  for (const name of await readdir(proc)) {
    if (!/^\d+$/.test(name)) continue
    try {
      const program = await readlink(`${proc}/${name}/exe`)
      if (program.startsWith(`${below}/`)) found.add(program)
    } catch (error) {
      // The process has ended, is a kernel thread, or has more rights than the agent and its children: not one of ours.
      if (!isGone(error) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
  }
  return [...found]
}
