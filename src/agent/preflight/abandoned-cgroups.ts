import { readdir, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { unlessGone } from '../container/process.ts'

/**
 * Removes what an agent that was killed has left beside these cgroups of a test container: cgroups of others, without a process.
 * @param before milliseconds since the epoch; younger ones may belong to a test container that is starting.
 */
export async function removeAbandoned(groups: readonly string[], before: number): Promise<void> {
  for (const group of groups) {
    const own = dirname(group)
    const all = dirname(own)
    for (const pod of await directoriesIn(all)) {
      const made = await unlessGone(stat(pod))
      if (pod === own || made === undefined || made.mtimeMs > before) continue
      for (const container of await directoriesIn(pod)) await removeIfUnused(container)
      await removeIfUnused(pod)
    }
  }
}

async function directoriesIn(directory: string): Promise<string[]> {
  const entries = await unlessGone(readdir(directory, { withFileTypes: true }))
  return (entries ?? []).flatMap(entry => (entry.isDirectory() ? [join(directory, entry.name)] : []))
}

export async function removeIfUnused(group: string): Promise<void> {
  await unlessGone(rmdir(group)).catch((error: NodeJS.ErrnoException) => {
    if (!['EBUSY', 'ENOTEMPTY'].includes(error.code ?? '')) throw error
  })
}
