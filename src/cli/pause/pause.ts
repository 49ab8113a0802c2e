import { backupPodSets } from '../../api/backuppodset.ts'
import { migratingPods } from '../../api/migrating-pod.ts'
import { conditionTypes } from '../../api/reasons.ts'
import { isKubeError } from '../../kube/errors.ts'
import { CliError, exitCodes } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld } from '../world.ts'

export interface PauseOptions {
  /** Seconds. */
  readonly timeout: number
}

/**
 * Pauses a set: the operator leaves its pods as they are, and repairs no failure. Waits until the operator says so.
 *
 * @throws CliError with exit code 4 if it has not said so by then; CliError, KubeError.
 */
export async function pause(session: Session, name: string, { timeout }: PauseOptions): Promise<void> {
  const { api, namespace, call } = session
  const set = await findSet(session, name)
  const owner = await api.get(migratingPods, { namespace, name }, call).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound', 'Forbidden')) return undefined
    throw error
  })
  if (owner !== undefined)
    throw new CliError(`${name} is the set of a MigratingPod: the operator would undo that`, {
      advice: `\`kubectl understudy suspend ${name}\` ends its pod with its memory saved`,
    })
  const { uid } = set.metadata
  const body = { metadata: { uid }, spec: { paused: true } }
  await api.patch(backupPodSets, { namespace, name }, { type: 'merge', body }, call)
  await followWorld(session, { namespace, set: name }, world =>
    untilPaused(session, world, name, timeout * 1000),
  )
}

export async function untilPaused(
  session: Session,
  world: FollowedWorld,
  name: string,
  timeoutMs: number,
): Promise<void> {
  await session.progress.step(`pause ${name}`, () =>
    world.until(
      ({ sets }) => {
        const set = sets.find(({ metadata }) => metadata.name === name)
        if (set?.spec.paused !== true) return undefined
        return set.status?.conditions?.find(
          ({ type, status, observedGeneration }) =>
            type === conditionTypes.paused &&
            status === 'True' &&
            observedGeneration === set.metadata.generation,
        )
      },
      timeoutMs,
      () =>
        new CliError(`the operator has not seen within --timeout that ${name} is paused`, {
          advice:
            'check with `kubectl understudy doctor` that an operator leads; it will see it when it does',
          exitCode: exitCodes.late,
        }),
    ),
  )
  answer(session, 'Pause', { name, paused: true }, () =>
    [
      `${name} is paused: its pods stay as they are, and no failure is repaired`,
      `  → to continue: kubectl understudy resume ${name}`,
    ].join('\n'),
  )
}
