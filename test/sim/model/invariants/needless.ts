/** Needless: a primary that works is replaced or ended. */
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { handoverDeadlineMs } from '../../../../src/slot/decide/deadlines.ts'
import type { Thawed } from '../cluster.ts'
import { type Ground, onLeases } from './ground.ts'
import { running } from './running.ts'

/** Checks that no pod resumes the memory of an app that ran until then on a working node and in a healthy pod. */
export function needlessTakeover({
  cluster,
  bounds,
  violate,
  health,
  fates,
}: Ground): (thaw: Thawed) => void {
  const { soundMs } = bounds
  return ({ at, pod }) => {
    const genesis = pod.containers.find(each => each.name === 'app')?.app?.memory.genesis
    if (genesis === undefined) return
    for (const node of cluster.nodes) {
      const since = health.soundSince(node)
      if (since === undefined || at - since < soundMs) continue
      const { machine } = node
      const ended = machine.endings.filter(
        ending => ending.genesis === genesis && ending.by === 'agent' && at - ending.at < soundMs,
      )
      const runs = running(cluster).filter(
        ({ node: of, app }) => of === node && app.memory.genesis === genesis,
      )
      const uids = [...ended.map(({ uid }) => uid), ...runs.map(one => one.pod.uid)]
      const uid = uids.find(one => one !== pod.uid && !fates.isBroken(one) && !fates.isShutOff(one))
      if (uid === undefined) continue
      violate('Needless', `${genesis} ${uid}`, `${pod.name} continues although nothing was wrong with ${uid}`)
    }
  }
}

/**
 * Checks that a primary that is stopped because its Lease requests a handover is not ended for that: its node resumes it
 * at the deadline.
 */
export function needlessEnd(ground: Ground): () => void {
  const { cluster, violate, health, fates } = ground
  const { nodes, time } = cluster
  /** Since when each primary has been stopped for a successor. */
  const standsSince = new Map<string, number>()
  const lookAtEnd = (before: NumberedSlotLease, { slot, holder, ending, suspended }: NumberedSlotLease) => {
    // It is stopped for its suspension, and saved: see SleepLost.
    if (suspended || ending !== holder.uid || before.ending === ending || before.handover === undefined)
      return
    const stands = nodes.some(node => health.isSound(node) && node.machine.stops.has(`handover-${ending}`))
    // If one successor failed and another one is tried, the stop counts from the first.
    const sinceMs = time.now() - (standsSince.get(ending) ?? time.now())
    if (stands && sinceMs < handoverDeadlineMs(0) && !fates.isBroken(ending))
      violate(
        'Needless',
        `handover ${ending}`,
        `${holder.name} is ended while it stands still to hand slot ${slot} over`,
      )
  }
  onLeases(ground, ({ before, lease, isOfSet }) => {
    if (isOfSet && before !== undefined) lookAtEnd(before, lease)
  })
  return () => {
    const uids = nodes.flatMap(({ machine }) =>
      [...machine.stops.keys()].flatMap(name => /^handover-(.*)$/.exec(name)?.[1] ?? []),
    )
    for (const uid of standsSince.keys()) if (!uids.includes(uid)) standsSince.delete(uid)
    for (const uid of uids) if (!standsSince.has(uid)) standsSince.set(uid, time.now())
  }
}
