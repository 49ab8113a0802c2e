/** NotConsented: a slot is handed over while its primary runs. */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { keyOf } from '../../../../src/kube/object.ts'
import { type Ground, onLeases } from './ground.ts'
import type { SavedGenesis } from './impostor-saved.ts'
import { running } from './running.ts'

/** A node that is cut off for longer is lost, so its consent is not needed, ms. */
const longCutMs = 25_000

export function notConsented(ground: Ground, saved: SavedGenesis): void {
  const { cluster, violate, health, fates } = ground
  onLeases(ground, ({ object, before, lease, isOfSet }) => {
    if (!isOfSet || before === undefined || before.epoch >= lease.epoch) return
    if (before.handover !== lease.holder.uid) return
    // The app there may be a fresh one, started in place of a dead one.
    const own = saved.get(`${slotName(before)} app`)
    const goesOn = running(cluster).find(
      ({ node, pod, app }) =>
        pod.uid === before.holder.uid &&
        app.memory.genesis === own &&
        !fates.isBroken(pod.uid) &&
        health.cutForMs(node) <= longCutMs,
    )
    if (goesOn !== undefined)
      violate(
        'NotConsented',
        `${keyOf(object)} ${lease.epoch}`,
        `slot ${lease.slot} is handed over while ${goesOn.pod.name} runs`,
      )
  })
}
