import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

/** Ids, as this machine sees them, of the processes of a pod on whatever node; `program` is its file's name. */
export async function pidsOf(podUid: string, program: string): Promise<number[]> {
  const pids: number[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      // Not its comm: Node renames its threads.
      const file = basename(await readlink(`/proc/${entry}/exe`))
      if (file !== program) continue
      const cgroups = await readFile(`/proc/${entry}/cgroup`, 'utf8')
      // The systemd driver writes the uid with underscores.
      if (cgroups.includes(podUid) || cgroups.includes(podUid.replaceAll('-', '_'))) pids.push(Number(entry))
    } catch {
      // The process has ended since the directory was read.
    }
  }
  return pids
}
