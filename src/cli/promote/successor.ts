import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { LastFailover, SlotStatus } from '../../api/slot-status.ts'
import type { CliError } from '../failure.ts'
import type { Session } from '../session.ts'
import type { FollowedWorld, World } from '../world.ts'

/** A slot after its change to another pod, and the set's record of the last failover. */
export interface Successor {
  readonly now: SlotStatus
  readonly lastFailover: LastFailover | undefined
}

/**
 * Waits until another pod than the current one serves the slot, and shows the two phases: another pod becomes the
 * primary, and that pod serves.
 *
 * @param how the current pod loses the slot, for the title of the first phase
 * @throws `late()` if both together take longer than `timeoutMs`
 */
export async function awaitSuccessor(
  { progress, clock }: Pick<Session, 'progress' | 'clock'>,
  world: FollowedWorld,
  set: BackupPodSet,
  { slot, pod, lastFailover: before }: Pick<SlotStatus, 'slot' | 'pod' | 'lastFailover'>,
  {
    how,
    timeoutMs,
    late,
  }: { readonly how: string; readonly timeoutMs: number; readonly late: () => CliError },
): Promise<Successor> {
  const end = clock.monotonic() + timeoutMs
  await progress.step(`slot ${slot}: ${how} ${pod}`, async step => {
    if (before !== undefined) step.expect(before.seconds)
    const { now } = await world.until(it => otherPrimaryIn(it, set, slot, pod), timeoutMs, late)
    step.detail(`${now.pod} takes over`)
  })
  return progress.step(`slot ${slot}: wait until the successor serves`, async step => {
    const serving = (it: World) => {
      const successor = otherPrimaryIn(it, set, slot, pod)
      return successor?.now.ready === true ? successor : undefined
    }
    const successor = await world.until(serving, Math.max(end - clock.monotonic(), 0), late)
    step.detail(successor.now.pod)
    return successor
  })
}

/** Returns a value once another pod than `before` is the slot's primary. */
export function otherPrimaryIn(
  { sets }: World,
  set: BackupPodSet,
  slot: number,
  before: string,
): Successor | undefined {
  const status = sets.find(({ metadata }) => metadata.name === set.metadata.name)?.status
  const now = status?.slots?.find(it => it.slot === slot)
  if (now === undefined || now.pod === before) return undefined
  return { now, lastFailover: status?.lastFailover }
}
