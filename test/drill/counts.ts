/** What a cluster holds of the machine: whatever grows with every refresh is a leak. */
import { readdir, readFile, readlink, statfs } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { cgroupsOf, detectCgroups, processesIn } from '../../playground/cgroups.ts'
import { labelPrefix } from '../../playground/plan.ts'

/** By name of the thing, e.g. `processes of sentinel`, `open files of node`, `mounts`. */
export type Counts = Readonly<Record<string, number>>

/** Name of the count of what lies in the tmpfs of all nodes. */
export const savedMemory = 'bytes of saved memory'

/** Programs that are ours or do our work; a node's own come and go as they like. */
const programs = new Set([
  'sentinel',
  'enter',
  'layer',
  'cell',
  'waker',
  'criu',
  'tar',
  'ld.so',
  'counter',
  'node',
])

/** Of these the open files are counted: they live on from refresh to refresh. */
const lasting = new Set(['sentinel', 'waker', 'counter', 'node'])

/** Counts that stay the same for a while: what was under way has ended. */
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

/** Connections to the API server and to peers are kept for a while: a few more or less mean nothing. */
const socketSlack = 12

/** What there is more of afterwards, as `name: before -> after`. */
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
