/** Resources of the machine that a cluster uses: any that grows with every refresh is a leak. */
import { readdir, readFile, readlink, statfs } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { cgroupsOf, detectCgroups, processesIn } from '../../playground/cgroups.ts'
import { labelPrefix } from '../../playground/plan.ts'

/** By kind of resource, such as `processes of sentinel`, `open files of node`, `mounts`. */
export type Counts = Readonly<Record<string, number>>

/** Name of the count of bytes in the tmpfs of all nodes. */
export const savedMemory = 'bytes of saved memory'

/** Programs that are ours or work for us; a node's own processes come and go. */
const programs = new Set([
  'sentinel',
  'pages',
  'nsrun',
  'rootfs',
  'test-container',
  'waker',
  'criu',
  'tar',
  'ld.so',
  'counter',
  'node',
])

/** Programs whose open files are counted, because they live on from refresh to refresh. */
const lasting = new Set(['sentinel', 'waker', 'counter', 'node'])

/** Waits until the counts stay the same for a while, so that all work in progress has ended, and returns them. */
export async function restingCounts(cluster: string, signal: AbortSignal): Promise<Counts> {
  for (let last = await countsNow(cluster), same = 0, tries = 0; ; tries += 1) {
    await sleep(500, undefined, { signal })
    const now = await countsNow(cluster)
    same = isDeepStrictEqual(now, last) ? same + 1 : 0
    if (same === 6) return now
    if (tries > 240) throw new Error(`no rest: ${grown(last, now).concat(grown(now, last)).join(', ')}`)
    last = now
  }
}

/** Connections to the API server and to peers are kept for a while, so a small difference means nothing. */
const socketSlack = 12

/** Lists the counts that have grown, as `name: before -> after`. */
export const grown = (before: Counts, after: Counts): string[] =>
  Object.entries(after)
    .filter(
      ([name, count]) => count > (before[name] ?? 0) + (name === 'open sockets of node' ? socketSlack : 0),
    )
    .map(([name, count]) => `${name}: ${before[name] ?? 0} -> ${count}`)

async function countsNow(cluster: string): Promise<Counts> {
  const counts: Record<string, number> = {}
  const add = (name: string, by: number) => {
    counts[name] = (counts[name] ?? 0) + by
  }
  const cgroups = await cgroupsOf(await detectCgroups(), labelPrefix(cluster))
  const mountNamespaces = new Map<string, number>()
  for (const pid of await processesIn(cgroups)) {
    try {
      const program = basename(await readlink(`/proc/${pid}/exe`))
      mountNamespaces.set(
        await readlink(`/proc/${pid}/ns/mnt`),
        (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).split('\n').length,
      )
      if (!programs.has(program)) continue
      add(`processes of ${program}`, 1)
      if (lasting.has(program))
        for (const fd of await readdir(`/proc/${pid}/fd`)) {
          const target = await readlink(`/proc/${pid}/fd/${fd}`)
          add(`open ${target.startsWith('socket:') ? 'sockets' : 'files'} of ${program}`, 1)
        }
      if (program === 'sentinel') {
        const memory = `/proc/${pid}/root/run/understudy/memory`
        const { blocks, bfree, bsize } = await statfs(memory)
        add(savedMemory, (blocks - bfree) * bsize)
      }
    } catch {
      // It has ended since it was listed.
    }
  }
  add('mount namespaces', mountNamespaces.size)
  for (const mounts of mountNamespaces.values()) add('mounts', mounts)
  return counts
}
