/** Changes of the set by its user, while other things happen to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { handoverMs } from '../bounds.ts'
import { podsOn, type Stage, setName, slotCount, slotsOn } from '../stage.ts'
import { until } from '../until.ts'
import { answered, untilAnswered } from './answered.ts'
import { type Nemesis, plain } from './nemesis.ts'

/** New pods, their memory, a handover of each slot, and the other fault of the round. */
const rollMs = 300_000

const change = ({ api, namespace, signal }: Stage, spec: object): Promise<void> =>
  untilAnswered(
    () => api.patch(backupPodSets, { namespace, name: setName }, { type: 'merge', body: { spec } }),
    signal,
  )

async function isRolled({ api, namespace }: Stage): Promise<boolean> {
  let isThere = false
  await answered(async () => {
    const { metadata, spec, status } = await api.get(backupPodSets, { namespace, name: setName })
    isThere =
      status?.observedGeneration === metadata.generation &&
      status?.updatedPods === (spec.replicas ?? 0) + (spec.hotBackups ?? 0)
  })
  return isThere
}

export const roll: Nemesis = {
  name: 'roll',
  proves: 'a new template replaces every pod, and no memory is lost, whatever else happens',
  family: 'change',
  aim: async (stage, random) => {
    const annotations = { drilled: String(random.below(2 ** 32)) }
    const { cluster, signal } = stage
    return {
      ...plain,
      target: 'the template',
      slots: slotsOn(stage, cluster.nodes),
      pods: podsOn(stage, cluster.nodes),
      mayPromote: true,
      outageMs: slotCount * handoverMs,
      fencedMs: 0,
      strike: async () => {
        await change(stage, {
          updateStrategy: { type: 'RollingUpdate' },
          template: { metadata: { annotations } },
        })
        await until(() => isRolled(stage), rollMs, signal)
      },
    }
  },
}

export const scale: Nemesis = {
  name: 'scale',
  proves: 'a set that loses a hot backup and gets it again keeps its promises to those that it has',
  family: 'change',
  aim: async (stage, random) => {
    const withoutMs = random.between(500, 8_000)
    return {
      ...plain,
      target: `one hot backup less for ${(withoutMs / 1000).toFixed(1)} s`,
      pods: podsOn(stage, stage.cluster.nodes),
      fencedMs: 0,
      strike: async () => {
        await change(stage, { hotBackups: 1 })
        await sleep(withoutMs, undefined, { signal: stage.signal })
      },
      heal: () => change(stage, { hotBackups: 2 }),
    }
  },
}
