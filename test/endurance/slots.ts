import { until } from '../../playground/until.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import {
  type CounterSet,
  count,
  createCounters,
  holderOf,
  killApp,
  promoted,
  readSlot,
  restartsOf,
  saved,
  slotsOf,
} from '../../zoo/slots.ts'
import { type Endurance, must } from './endurance.ts'

const primaries = 3

/** Repeatedly kills any of three primaries; the only understudy takes over its slot with its memory. */
export const slots: Endurance = {
  name: 'slots',
  title: `${primaries} primaries, 1 understudy: any one is killed, and its own memory comes back`,
  n: 30,
  run: async ({ api, namespace, n, signal, say }) => {
    const set: CounterSet = { api, namespace, name: 'shared' }
    await createCounters(set, { replicas: primaries, hotBackups: 1, antiAffinity: 'Required' })
    await until('a slot for each primary', async () => (await slotsOf(set)).length === primaries, {
      patienceMs: 60_000,
      pollMs: 250,
      signal,
    })
    const protections: Record<string, number> = {}
    for (let round = 0; round < n; round += 1) {
      signal.throwIfAborted()
      const slot = round % primaries
      await saved(set)
      const expected = (await count(set, 1))[slot]
      await saved(set)
      const { status } = await api.get(backupPodSets, { namespace, name: set.name })
      const protection = status?.slots?.find(it => it.slot === slot)?.protection ?? 'None'
      protections[protection] = (protections[protection] ?? 0) + 1
      const lease = (await slotsOf(set))[slot]
      if (lease === undefined) throw new Error(`slot ${slot} is gone`)
      const killed = await holderOf(set, lease)
      await killApp(killed)
      const next = await promoted(set, lease)
      const read = await readSlot(set, next)
      must(`slot ${slot} came back, instead of ${expected}, with`, read, value => value === expected)
      must('restarts', await restartsOf(set, killed), seen => Object.keys(seen).length === 0)
      say(`${round + 1}/${n}: slot ${slot} (${protection}) came back with ${read}`)
    }
    return [`${n} of ${n} came back with their own memory: ${JSON.stringify(protections)}`]
  },
}
