import { readdir, readlink } from 'node:fs/promises'
import { isGone, type ProcFs } from '../discover/process.ts'

/** Programs below a directory that processes of this node run, as paths: what a sentinel of an earlier agent is. */
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
      // It has ended, is a thread of the kernel, or has more rights than we and what we start: not one of ours.
      if (!isGone(error) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
  }
  return [...found]
}
