/** Faults of one primary. */
import { pidsOf } from '../../playground/pids.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { pods } from '../../src/kube/resources.ts'
import { counter } from '../../zoo/slots.ts'
import { deathMs, hangMs, sentinelStartMs, unnoticedMs } from '../bounds.ts'
import type { Random } from '../random.ts'
import { type Primary, primariesOf, type Stage, savedThrough, slotsOn } from '../stage.ts'
import { untilAnswered } from './answered.ts'
import { type Blow, type Nemesis, plain } from './nemesis.ts'
import { processesOn, signalAll } from './processes.ts'

const victimOf = (stage: Stage, random: Random): Primary => random.of(primariesOf(stage))

const signalApp = async ({ pod }: Primary, signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> =>
  signalAll(await pidsOf(pod.metadata.uid, counter.program), signal)

const against = (victim: Primary): Pick<Blow, 'target' | 'slots' | 'pods' | 'mayPromote'> => ({
  target: `${victim.pod.metadata.name} of slot ${victim.slot}`,
  slots: [victim.slot],
  pods: [victim.pod.metadata.name],
  mayPromote: true,
})

export const killApp: Nemesis = {
  name: 'kill',
  proves:
    'an app that ends by SIGKILL continues in its understudy, and the app that the kubelet starts never answers',
  family: 'app',
  aim: async (stage, random) => {
    const victim = victimOf(stage, random)
    return {
      ...plain,
      ...against(victim),
      outageMs: deathMs,
      fencedMs: 0,
      strike: () => signalApp(victim, 'SIGKILL'),
    }
  },
}

/** The sentinel is away when the app ends, so no redirect is at hand, and no process hears of the death. */
export const killUnwatched: Nemesis = {
  name: 'kill-unwatched',
  proves:
    'an app that ends together with its sentinel continues in its understudy, and no Service leads to an empty app',
  family: 'app',
  aim: async (stage, random) => {
    const victim = victimOf(stage, random)
    const { node } = victim
    return {
      ...plain,
      ...against(victim),
      target: `${victim.pod.metadata.name} of slot ${victim.slot}, and the sentinel of ${node}`,
      slots: slotsOn(stage, [node]),
      unsaved: savedThrough(stage, [node]),
      mayAnswerEmpty: true,
      outageMs: deathMs + sentinelStartMs + unnoticedMs,
      strike: async () => {
        const sentinels = await processesOn(stage.cluster, node, 'sentinel')
        const apps = await pidsOf(victim.pod.metadata.uid, counter.program)
        signalAll([...sentinels, ...apps], 'SIGKILL')
      },
    }
  },
}

export const hangApp: Nemesis = {
  name: 'hang',
  proves:
    'an app that answers no more (SIGSTOP) is ended by failover.liveness, and its memory continues elsewhere',
  family: 'app',
  aim: async (stage, random) => {
    const victim = victimOf(stage, random)
    return {
      ...plain,
      ...against(victim),
      outageMs: hangMs,
      // A stopped process is not saved.
      unsaved: [victim.slot],
      holdMs: hangMs,
      strike: () => signalApp(victim, 'SIGSTOP'),
    }
  },
}

const deletion = (name: string, proves: string, gracePeriodSeconds: number | undefined): Nemesis => ({
  name,
  proves,
  family: 'app',
  aim: async (stage, random) => {
    const victim = victimOf(stage, random)
    const { name, uid } = victim.pod.metadata
    return {
      ...plain,
      ...against(victim),
      outageMs: deathMs,
      strike: () =>
        untilAnswered(
          () => stage.api.delete(pods, { namespace: stage.namespace, name }, { uid, gracePeriodSeconds }),
          stage.signal,
          // This request, of which the answer was lost, or an earlier fault of the round has led to its deletion.
          error => isKubeError(error, 'NotFound', 'Conflict'),
        ),
    }
  },
})

export const deletePod = deletion(
  'delete',
  'a pod that is deleted is stopped before its successor runs',
  undefined,
)

export const forceDelete = deletion(
  'force-delete',
  'a pod that is gone for the API server is stopped on its node, too',
  0,
)
