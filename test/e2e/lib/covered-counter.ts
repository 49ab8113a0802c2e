import { type CounterSet, count, counter, holderOf, saved, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import type { World } from './world.ts'

/** Makes a set of one counter with one hot backup, waits until it has an heir and is saved, and lets it count. */
export async function coveredCounter(world: World) {
  const set: CounterSet = { api: world.api, namespace: world.namespace, name: 'moving' }
  await world.createSet('moving', {
    ...{ replicas: 1, hotBackups: 1, template: counter.template },
    checkpoint: { interval: '1s' },
  })
  const lease = await eventually(async () => {
    const [one] = await slotsOf(set)
    if (one?.heir === undefined) throw new Error('no heir yet')
    return one
  })
  await saved(set)
  const [expected] = await count(set, 5)
  const primary = await holderOf(set, lease)
  return { set, lease, expected, primary }
}
