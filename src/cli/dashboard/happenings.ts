import type { BackupPodSet } from '../../api/backuppodset.ts'
import { isFinished, type Migration, outcomeOf } from '../../api/migration.ts'
import { failoverSteps, type LastFailover } from '../../api/slot-status.ts'
import type { Happening, PhasePicture } from './wire.ts'

/** The most entries of a set. */
const mostShown = 20

/** Returns the failovers and moves of a set, newest first. @param migrations of the set */
export function happeningsOf({ status = {} }: BackupPodSet, migrations: readonly Migration[]): Happening[] {
  const failovers = status.failovers ?? (status.lastFailover ? [status.lastFailover] : [])
  return [...failovers.map(failover), ...migrations.map(move)]
    .sort((a, b) => b.at - a.at || (a.id < b.id ? -1 : 1))
    .slice(0, mostShown)
}

function failover({ slot, from, to, reason, seconds, at, ...more }: LastFailover): Happening {
  const { how, stateAge, phases = {} } = more
  return {
    ...{ id: `failover ${slot} ${to} ${at}`, type: 'failover', slot, from, to, at: timeOf(at), seconds },
    ...{ outcome: 'done', why: reason },
    ...(how === undefined ? {} : { how }),
    ...(stateAge === undefined ? {} : { stateAge }),
    phases: Object.entries(phases)
      .map(([name, seconds]) => ({ name, seconds }))
      .sort((a, b) => rankOf(a.name) - rankOf(b.name)),
  }
}

const steps: readonly string[] = failoverSteps
/** Steps of a later operator come last. */
const rankOf = (step: string): number => (steps.includes(step) ? steps.indexOf(step) : steps.length)

function move(migration: Migration): Happening {
  const { metadata, spec, status = {} } = migration
  const { source, target, phaseTimes = [] } = status
  const word = outcomeOf(migration)
  const isOver = isFinished(migration)
  const times = phaseTimes.map(({ phase, at }) => ({ phase, at: timeOf(at) })).sort((a, b) => a.at - b.at)
  const begun = times[0]?.at ?? timeOf(metadata.creationTimestamp)
  const ended = times.at(-1)?.at ?? begun
  const why = word === undefined ? 'no operator has seen it yet' : `${word.reason}: ${word.message}`
  return {
    ...{ id: `move ${metadata.name} ${metadata.uid}`, type: 'move' },
    ...(source === undefined ? {} : { slot: source.slot }),
    from: placed(spec.source.name, source?.node),
    to: placed(target?.name, target?.node),
    at: begun,
    ...(isOver ? { seconds: (ended - begun) / 1000 } : {}),
    outcome: !isOver ? 'under way' : word?.status === 'True' ? 'done' : 'failed',
    why,
    phases: phasesOf(times, isOver),
  }
}

/** The last time is that of the end, which is no phase of its own. */
function phasesOf(
  times: readonly { readonly phase: string; readonly at: number }[],
  isOver: boolean,
): readonly PhasePicture[] {
  return times.flatMap(({ phase, at }, index): PhasePicture[] => {
    const next = times[index + 1]
    if (next !== undefined) return [{ name: phase, seconds: (next.at - at) / 1000 }]
    return isOver ? [] : [{ name: phase }]
  })
}

const placed = (pod: string | undefined, node: string | undefined): string =>
  `${pod ?? 'a pod'}${node === undefined ? '' : ` on ${node}`}`

/** 0 for a text that is no time: such an entry comes last. */
function timeOf(text: string | undefined): number {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? 0 : at
}
