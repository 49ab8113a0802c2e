import { slotName } from '../../checkpoint/manifest.ts'
import type { DutyOf } from './duty.ts'
import type { Work } from './work.ts'

/** Fetches each new generation of a slot from the node that makes them. */
export async function hold(
  work: Work,
  { lease, settings, source }: DutyOf<'hold'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, set, slot, life } = lease
  const key = { namespace, set, slot, life }
  for (;;) {
    const stored = await work.peers.pull(key, source, lease.epoch, signal)
    work.metrics.received({ bytes: stored.manifest.bytes, pipelineSeconds: stored.pipelineMs / 1000 })
    work.progress.well(slotName(key))
    work.announce(key)
    await work.store.prune(key, settings.keep)
  }
}
