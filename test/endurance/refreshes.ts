import { until } from '../../playground/until.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { type CounterSet, count, createCounters, restartsOf, saved, slotsOf } from '../../zoo/slots.ts'
import { type Counts, grown, restingCounts, savedMemory } from './counts.ts'
import { type Endurance, must } from './endurance.ts'

const primaries = 5
const understudies = 3

/** Saved memory may differ by the pages that the applications changed meanwhile; a leaked generation is far more. */
const memorySlack = 64 * 1024 * primaries

/** Makes many refreshes in a row. Then no count may have grown, and after the set's deletion nothing may be left. */
export const refreshes: Endurance = {
  name: 'refreshes',
  title: `refreshes of ${primaries} primaries with ${understudies} understudies leave nothing behind`,
  n: 50,
  run: async ({ api, cluster, namespace, n, signal, say }) => {
    const set: CounterSet = { api, namespace, name: 'refreshed' }
    const ref = { namespace, name: set.name }
    let empty: Counts = {}
    await until(
      'memory of earlier sets swept, which agents do a minute after their end',
      async () => {
        empty = await restingCounts(cluster.name, signal)
        return empty[savedMemory] === 0
      },
      { patienceMs: 150_000, pollMs: 500, signal },
    )
    await createCounters(set, { replicas: primaries, hotBackups: understudies })
    const generations = async () => {
      const { status } = await api.get(backupPodSets, ref)
      const slots = status?.slots ?? []
      return slots.length === primaries &&
        slots.every(({ protection }) => protection === 'Frozen' || protection === 'Staged')
        ? Math.min(...slots.map(({ generation }) => generation ?? 0))
        : undefined
    }
    const reached = (what: string, goal: (now: number) => boolean) =>
      until(
        what,
        async () => {
          const now = await generations()
          return now !== undefined && goal(now) && now
        },
        { patienceMs: 20_000 * n, pollMs: 500, signal },
      )
    const interval = (text: string) =>
      api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { checkpoint: { interval: text } } } })
    /** Returns the counts while no memory is being saved or restored. */
    const atRest = async () => {
      await interval('1h')
      const counts = await restingCounts(cluster.name, signal)
      await interval('1s')
      return counts
    }
    await reached('protection of all slots, refreshed three times', now => now >= 3)
    await count(set, 3)
    await saved(set)
    const before = await atRest()
    const first = await reached('protection of all slots', () => true)
    say(`all ${primaries} slots protected at generation ${first}`)
    const begun = performance.now()
    const last = await reached(`${n} refreshes of each primary`, now => now >= first + n)
    const seconds = (performance.now() - begun) / 1000
    say(`generation ${last} of the slowest slot after ${seconds.toFixed(0)} s`)
    const after = await atRest()
    must(
      'grew',
      grown(before, after).filter(line => !line.startsWith(savedMemory)),
      lines => lines.length === 0,
    )
    must(
      `${savedMemory} grew`,
      [before[savedMemory] ?? 0, after[savedMemory] ?? 0],
      ([was = 0, is = 0]) => is <= was + memorySlack,
    )
    must('restarts', await restartsOf(set), seen => Object.keys(seen).length === 0)
    must(
      'slots',
      (await slotsOf(set)).map(({ epoch }) => epoch),
      seen => seen.length === primaries,
    )
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Foreground' })
    let left: string[] = []
    await until(
      'everything gone',
      async () => {
        left = grown(empty, await restingCounts(cluster.name, signal))
        return left.length === 0
      },
      { patienceMs: 120_000, pollMs: 500, signal },
    ).catch((error: unknown) => {
      throw new Error(`left behind: ${left.join(', ')}`, { cause: error })
    })
    return [
      `${n} refreshes of each of ${primaries} primaries in ${seconds.toFixed(0)} s: no restart, nothing grew`,
      ...Object.entries(after).map(
        ([name, value]) => `${name}: ${empty[name] ?? 0} -> ${before[name] ?? 0} -> ${value} -> as before`,
      ),
    ]
  },
}
