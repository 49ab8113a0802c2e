/** What a cluster holds of the machine: whatever grows with every refresh is a leak. */
import { readdir, readFile, readlink, statfs } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cgroupsOf, detectCgroups, processesIn } from '../../playground/cgroups.ts'
import { labelPrefix } from '../../playground/plan.ts'

/** By name of the thing, e.g. `processes of sentinel`, `open files of node`, `mounts`. */
export type Counts = Readonly<Record<string, number>>

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
  'nft',
  'counter',
  'node',
])

/** Of these the open files are counted: they live on from refresh to refresh. */
const lasting = new Set(['sentinel', 'waker', 'counter', 'node'])

/**
 * The least that was seen in a while. What a refresh needs comes and goes; what it leaves behind is there each time.
 */
export async function restingCounts(cluster: string, signal: AbortSignal): Promise<Counts> {
  const samples: Counts[] = []
  for (let i = 0; i < 20; i += 1) {
    samples.push(await countsNow(cluster))
    await sleep(250, undefined, { signal })
  }
  const names = new Set(samples.flatMap(Object.keys))
  return Object.fromEntries(
    [...names].sort().map(name => [name, Math.min(...samples.map(sample => sample[name] ?? 0))]),
  )
}

/** What there is more of afterwards, as `name: before -> after`. */
export const grown = (before: Counts, after: Counts): string[] =>
  Object.entries(after)
    .filter(([name, count]) => count > (before[name] ?? 0))
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
      if (lasting.has(program)) add(`open files of ${program}`, (await readdir(`/proc/${pid}/fd`)).length)
      if (program === 'sentinel') {
        const memory = `/proc/${pid}/root/run/understudy/memory`
        const { blocks, bfree, bsize } = await statfs(memory)
        add('bytes of saved memory', (blocks - bfree) * bsize)
      }
    } catch {
      // It has ended since it was listed.
    }
  }
  add('mount namespaces', mountNamespaces.size)
  for (const mounts of mountNamespaces.values()) add('mounts', mounts)
  return counts
}
