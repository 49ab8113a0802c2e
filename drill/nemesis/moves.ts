/**
 * Moves of a primary by Migrations, as users ask for them. Another fault of the round begins meanwhile; whatever that is, a Migration
 * ends, what it says of its end is true, and the slot has a primary with its memory.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFinished, type Migration, migrations, outcomeOf } from '../../src/api/migration.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { apiVersionOf } from '../../src/kube/resources.ts'
import { handoverMs } from '../bounds.ts'
import { type Move, now } from '../history.ts'
import type { Random } from '../random.ts'
import { type Primary, primariesOf, type Stage, targetNodes } from '../stage.ts'
import { answered, untilAnswered } from './answered.ts'
import { type Blow, type Nemesis, plain } from './nemesis.ts'

/** The Migration gives up before, unless its primary is stopped then. */
const pendingTimeoutSeconds = 45
/** Longer than that, than a handover may last, and than the API server may be away. */
const endsMs = 180_000
/** A small pod moves within two to three seconds. */
const movesMs = 2_500
const lookEveryMs = 50
const anyNode = 'any node'

/** A Migration that the drill has created. */
interface Asked {
  readonly name: string
  /** By `now`; undefined: never. */
  readonly callOffAt: number | undefined
}

const moving = (
  name: string,
  proves: string,
  /** For each Migration: when it is called off, ms after its creation; undefined: never. */
  draw: (random: Random) => readonly (number | undefined)[],
): Nemesis => ({
  name,
  proves,
  family: 'move',
  othersWithinMs: movesMs,
  aim: async (stage, random) => {
    const source = random.of(primariesOf(stage))
    const nodes = targetNodes(stage).filter(node => node !== source.node)
    const to = random.of([anyNode, ...nodes])
    const number = random.below(2 ** 32)
    const wanted = draw(random)
    const ended: Move[] = []
    return {
      ...plain,
      ...against(source, to),
      strike: async () => {
        const moves = wanted.map(async (callOffAfterMs, index) => {
          const name = `move-${number}-${index}`
          await ask(stage, source, { name, to })
          const callOffAt = callOffAfterMs === undefined ? undefined : now() + callOffAfterMs
          ended.push(await endOf(stage, source, { name, callOffAt }))
        })
        await Promise.all(moves)
      },
      after: async () => ended,
    }
  },
})

const against = (
  { slot, pod }: Primary,
  to: string,
): Pick<Blow, 'target' | 'slots' | 'pods' | 'mayPromote' | 'outageMs' | 'fencedMs'> => ({
  target: `${pod.metadata.name} of slot ${slot} to ${to}`,
  slots: [slot],
  pods: [pod.metadata.name],
  mayPromote: true,
  // Another fault may prevent the handover while the primary is stopped for it.
  outageMs: handoverMs,
  fencedMs: 0,
})

function ask(
  { api, namespace, signal }: Stage,
  { pod }: Primary,
  { name, to }: { readonly name: string; readonly to: string },
): Promise<void> {
  const { name: source, uid } = pod.metadata
  const body = {
    apiVersion: apiVersionOf(migrations),
    kind: migrations.kind,
    metadata: { name },
    spec: {
      source: { name: source, uid },
      ...(to !== anyNode && { addedNodeSelector: { 'kubernetes.io/hostname': to } }),
      pendingTimeoutSeconds,
      unschedulableTimeoutSeconds: pendingTimeoutSeconds,
    },
  }
  return untilAnswered(
    () => api.create(migrations, body, { namespace }),
    signal,
    error => isKubeError(error, 'AlreadyExists'),
  )
}

/** Follows a Migration to its end, and calls it off when its time has come. */
async function endOf(stage: Stage, { slot, pod }: Primary, { name, callOffAt }: Asked): Promise<Move> {
  const { api, namespace, signal } = stage
  const about = { type: 'move', slot, source: pod.metadata.uid } as const
  let last: Migration | undefined
  for (const until = now() + endsMs; now() < until; ) {
    // The drill looks also when the time has come: a Migration that has ended cannot be called off any more. If the answer to an earlier
    // deletion was lost, the Migration is gone.
    const isSeen = await answered(
      async () => {
        last = await api.get(migrations, { namespace, name })
      },
      error => callOffAt !== undefined && isKubeError(error, 'NotFound'),
    )
    if (last !== undefined && isFinished(last)) {
      const ended = last.status?.phase === 'Succeeded' ? 'Succeeded' : 'Failed'
      return { ...about, ...said(last), at: now(), ended }
    }
    if (isSeen && callOffAt !== undefined && now() >= callOffAt && (await callOff(stage, name)))
      return { ...about, ...said(last), at: now(), ended: 'CalledOff' }
    await sleep(lookEveryMs, undefined, { signal })
  }
  return { ...about, ...said(last), at: now(), ended: 'Unfinished' }
}

const callOff = ({ api, namespace }: Stage, name: string): Promise<boolean> =>
  answered(
    () => api.delete(migrations, { namespace, name }),
    error => isKubeError(error, 'NotFound'),
  )

const said = (migration: Migration | undefined): Pick<Move, 'target' | 'phase' | 'reason'> => ({
  target: migration?.status?.target?.uid,
  phase: migration?.status?.phase,
  reason: migration && outcomeOf(migration)?.reason,
})

export const move = moving(
  'move',
  'a primary that moves loses nothing, whatever else happens, and its Migration ends and says the truth',
  () => [undefined],
)

export const moveCalledOff = moving(
  'move-called-off',
  'a Migration that is deleted before the switch leaves its source running, with all its memory',
  random => [random.between(0, movesMs)],
)

export const moveTwice = moving(
  'move-twice',
  'two Migrations of one pod move it once, and both say the truth',
  () => [undefined, undefined],
)
