import { slotName } from '../../checkpoint/manifest.ts'
import { parseWatchName } from './deaths.ts'
import type { DutyOf } from './duty.ts'
import type { Work } from './work.ts'

/**
 * Leads connections to a dead primary to whoever holds its slot now. What was prepared while it lived led to its heir, or
 * nowhere, and the successor may be another one.
 */
export async function redirect(
  work: Work,
  { pod, lease }: DutyOf<'redirect'>,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, understudies, log } = work
  if (lease.ip === undefined) return
  const { located } = await understudies.enter(pod, signal)
  const [first] = located.containers
  if (first === undefined) return
  for (const { name } of await sentinel.watches(signal))
    if (parseWatchName(name)?.uid === pod.uid)
      await sentinel.grave({ name, netns: first.init, heir: lease.ip }, signal)
  log.info({ pod: pod.name, slot: slotName(lease), to: lease.ip }, 'connections are led to the successor')
}
