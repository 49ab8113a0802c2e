import type { BackupPodSet } from '../../api/backuppodset.ts'
import { annotations } from '../../api/labels.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import type { Session } from '../session.ts'
import type { FollowedWorld } from '../world.ts'
import { awaitSuccessor, type Successor } from './successor.ts'

/**
 * Requests a handover of a slot to a hot backup. The operator stops the primary, the backup gets its last memory, and
 * continues with it. Nothing is lost. If the handover does not finish in time, the request is withdrawn, and the
 * primary resumes, also without loss.
 *
 * @throws CliError with exit code 4 after the request was withdrawn; KubeError.
 */
export async function handOver(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  current: SlotStatus,
  primary: Pod,
  timeoutMs: number,
): Promise<Successor> {
  const { clock } = session
  const { slot, pod: name } = current
  await wish(session, primary, new Date(clock.now()).toISOString())
  try {
    return await awaitSuccessor(session, world, set, current, {
      how: 'hand over from',
      timeoutMs,
      late: () =>
        new CliError(
          `slot ${slot}: no successor has replaced ${name} within --timeout; it keeps running, and nothing is lost`,
          {
            advice: `check with \`kubectl understudy status ${set.metadata.name}\` that its hot backups are in place; or use --delete to save and delete it, which loses the changes in between`,
            exitCode: exitCodes.late,
          },
        ),
    })
  } catch (error) {
    await wish(session, primary, null).catch((late: unknown) => {
      // The primary is gone: the operator was faster.
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
