import type { BackupPodSet, SlotStatus } from '../../api/backuppodset.ts'
import { annotations } from '../../api/labels.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import type { Session } from '../session.ts'
import type { FollowedWorld } from '../world.ts'
import { type Successor, successorIn } from './successor.ts'

/**
 * Has a slot go to a hot backup with all that its primary has done: the operator has the primary stand still, its last
 * memory is brought to the backup, and that one goes on. Nothing is lost on this way, and nothing if it comes to no end:
 * then the wish is taken back, and the primary goes on.
 *
 * @throws CliError with exit code 4 after it was taken back; KubeError.
 */
export async function handOver(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  { slot, pod: name }: SlotStatus,
  primary: Pod,
  timeoutMs: number,
): Promise<Successor> {
  const { clock } = session
  await wish(session, primary, new Date(clock.now()).toISOString())
  try {
    return await world.until(
      now => successorIn(now, set, slot, name),
      timeoutMs,
      () =>
        new CliError(
          `slot ${slot}: nobody has followed ${name} within the time given; it goes on, and nothing is lost`,
          {
            advice: `\`kubectl understudy status ${set.metadata.name}\` shows whether its hot backups are in place; --delete saves and deletes it, which loses what happens in between`,
            exitCode: exitCodes.late,
          },
        ),
    )
  } catch (error) {
    await wish(session, primary, null).catch((late: unknown) => {
      // It is gone: the operator was faster.
      if (!isKubeError(late, 'NotFound', 'Conflict')) throw late
    })
    throw error
  }
}

const wish = ({ api, call }: Session, { metadata }: Pod, word: string | null) => {
  const { namespace, name, uid } = metadata
  const body = { metadata: { uid, annotations: { [annotations.handoverRequested]: word } } }
  return api.patch(pods, { namespace, name }, { type: 'merge', body }, call)
}
