import { backupPodSets } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { type Lease, leases, type Pod, pods as podResource } from '../../src/kube/resources.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { pidInPod } from '../node/process.ts'
import { counterTemplate, setOf } from '../objects.ts'
import { type Recording, record } from '../observe/recording.ts'
import { isInPlace, isLeaving, kindOf } from '../observe/state.ts'
import { podWrites } from '../observe/writes.ts'
import { holderPod, operatorName, operatorNamespace } from '../operator.ts'
import type { Sampler } from '../report.ts'

export const leader: Bench = {
  name: 'leader',
  title:
    'the leading operator is killed and a primary deleted in the same moment: standby leads, first repair',
  trials: 10,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-leader', context.signal, namespace =>
      measure(context, namespace, samples),
    )
    return samples.report('leader')
  },
}

const wanted = { primary: 1, hotbackup: 1, coldbackup: 1 }
const timeoutMs = 60_000
/** The pod's process is dead already, so a grace period would be pointless. */
const atOnce = { gracePeriodSeconds: 0 }

async function measure(context: BenchContext, namespace: string, samples: Sampler): Promise<void> {
  const { api, clock, signal, images } = context
  const operator = demand(context.operator, 'the operator')
  const name = 'web'
  const [pods, elections] = await Promise.all([
    record(api, podResource, { namespace, labelSelector: `${labels.set}=${name}`, now: clock.now, signal }),
    record(api, leases, { namespace: operatorNamespace, now: clock.now, signal }),
  ])
  const first = pods.next({
    what: 'set in place',
    timeoutMs,
    holds: live => isInPlace(live.values(), wanted),
  })
  await api.create(backupPodSets, setOf(name, wanted, counterTemplate(images.counter, name)), {
    namespace,
    signal,
  })
  await first
  for (let trial = 1; trial <= context.n; trial++) {
    const leading = await operator.settled()
    const pid = demand(await pidInPod(leading.metadata.uid, 'node'), 'the process of the leader')
    // The standby polls the Lease at its own pace; the random delay keeps trials from starting at the same phase of it.
    await systemClock.sleep(2_000 + Math.random() * 500, signal)
    const known = new Map(pods.live)
    const victim = demand(
      [...known.values()].find(pod => kindOf(pod) === 'primary'),
      'a primary',
    )
    pods.forget()
    elections.forget()
    clock.anchor()
    const { taken, repaired, restored } = expected(pods, elections, leading, victim)
    const killed = clock.now()
    process.kill(pid, 'SIGKILL')
    await api.delete(podResource, { namespace, name: victim.metadata.name }, {}, { signal })
    const { at: takenAt } = await taken
    const { at: repairedAt } = await repaired
    const { at: restoredAt } = await restored
    noteTimes(samples, killed, takenAt, repairedAt, restoredAt)
    noteWrites(
      samples,
      podWrites(known, pods.events).filter(({ pod }) => pod.metadata.uid !== victim.metadata.uid),
    )
    context.say(`${trial}/${context.n}: leads after ${((takenAt - killed) / 1000).toFixed(2)} s`)
    // Delete the pod to get a fresh replica: the killed container would be restarted with a growing back-off.
    await api.delete(podResource, { namespace: operatorNamespace, name: leading.metadata.name }, atOnce, {
      signal,
    })
  }
}

/** Returns the events that each trial waits for. */
const expected = (pods: Recording<Pod>, elections: Recording<Lease>, leading: Pod, victim: Pod) => ({
  taken: elections.next({
    what: 'the standby leads',
    timeoutMs,
    holds: (_, { object }) =>
      object.metadata.name === operatorName &&
      ![undefined, '', leading.metadata.name].includes(holderPod(object.spec?.holderIdentity)),
  }),
  repaired: pods.next({
    what: 'the hot backup is promoted',
    timeoutMs,
    holds: (_, { object }) => kindOf(object) === 'primary' && object.metadata.uid !== victim.metadata.uid,
  }),
  restored: pods.next({
    what: 'the set is in place again',
    timeoutMs,
    holds: live => {
      const old = live.get(victim.metadata.uid)
      return (old === undefined || isLeaving(old)) && isInPlace(live.values(), wanted)
    },
  }),
})

function noteTimes(
  samples: Sampler,
  killed: number,
  taken: number,
  repaired: number,
  restored: number,
): void {
  const note = (what: string, from: number, to: number) => samples.add(what, 's', (to - from) / 1000)
  note('killed to standby holds the Lease', killed, taken)
  note('standby holds the Lease to first repair', taken, Math.max(taken, repaired))
  note('killed to first repair (label moved)', killed, repaired)
  note('killed to set in place again', killed, restored)
}

function noteWrites(samples: Sampler, writes: ReturnType<typeof podWrites>): void {
  const count = (of: string) => writes.filter(({ type }) => type === of).length
  samples.add('pods created (1 was missing)', 'writes', count('created'))
  samples.add('pods deleted (none was too many)', 'writes', count('deleted'))
}
