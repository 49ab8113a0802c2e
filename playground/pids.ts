import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

/**
 * Returns the ids, as this machine sees them, of a pod's processes on any node; `program` is the executable's file
 * name.
 */
export async function pidsOf(podUid: string, program: string): Promise<number[]> {
  const pids: number[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      // The comm would not do: Node renames its threads.
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
