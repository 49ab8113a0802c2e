/**
 * Proves on a cluster that the checker catches what fences prevent: without them, a primary whose node is cut off runs on
 * while Kubernetes gives its slot to another pod, and a client on its side of the cut is still answered by it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { check } from '../check/check.ts'
import { now } from '../history.ts'
import { onPlayground, onStage, type RunOptions } from '../run.ts'
import { podsOn, primariesOf, slotsOn, specOf } from '../stage.ts'
import { until } from '../until.ts'
import type { Finding } from './selftest.ts'

/** Kubernetes gives a node up after 50 s; the rest is `unreadySeconds` and a busy machine. */
const patienceMs = 180_000

export const live = (
  options: Pick<RunOptions, 'name' | 'keep' | 'progress' | 'signal' | 'say'>,
): Promise<Finding> =>
  onPlayground(options, (cluster, api) => {
    const { signal, say } = options
    const spec = specOf(cluster.nodes[0] ?? '', { fencing: 'None', unreadySeconds: 1 })
    return onStage({ cluster, api, spec, signal }, async (stage, journal) => {
      await sleep(3_000, undefined, { signal })
      const [victim] = primariesOf(stage)
      if (victim === undefined) throw new Error('the set has no primary')
      const { node, slot, lease } = victim
      journal.tell({
        ...{ type: 'fault', at: now(), nemesis: 'cut', target: node },
        ...{
          slots: slotsOn(stage, [node]),
          pods: podsOn(stage, [node]),
          mayPromote: true,
          mayAnswerEmpty: false,
        },
        ...{ unsaved: [slot], outageMs: patienceMs },
      })
      await cluster.cutNode(node)
      say(`${node} is cut off, and nothing stops its primary`)
      try {
        await until(
          async () => (stage.recorder.slots.get(slot)?.epoch ?? 0) > lease.epoch,
          patienceMs,
          signal,
        )
        say('another pod has its slot')
        await sleep(5_000, undefined, { signal })
      } finally {
        await cluster.joinNode(node)
      }
      await sleep(3_000, undefined, { signal })
      journal.tell({ type: 'healed', at: now() })
      journal.tell({ type: 'end', at: now() })
      const found = check(journal.history()).violations.filter(({ rule }) => rule === 'OldEpoch')
      return {
        title: 'a cluster without fences, whose node is cut off',
        isRight: found.length > 0,
        says:
          found.length > 0 ? `OldEpoch ${found.length} times: ${found[0]?.says}` : 'OldEpoch was not caught',
      }
    })
  })
