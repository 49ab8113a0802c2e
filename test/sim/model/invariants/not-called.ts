/**
 * NotCalled: a restored app runs in a pod that is not its slot's primary at that moment, and has no grant for the slot.
 * GrantBroken: another pod gets a slot that the heir has taken by its grant, and still has; or an agent ends that heir.
 */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { keyOf } from '../../../../src/kube/object.ts'
import type { ModelNode, Thawed } from '../cluster.ts'
import { type Ground, onLeases } from './ground.ts'
import { running } from './running.ts'

/** Long before the operator takes the node of an heir for lost. */
const lostMs = 45_000

interface Called {
  readonly at: number
  readonly uid: string
  readonly epoch: number
}

export function notCalled(ground: Ground): {
  readonly atThaw: (thaw: Thawed) => void
  readonly look: () => void
} {
  const { cluster, bounds, fates, health, violate } = ground
  const { time, thaws, nodes } = cluster
  /** How many endings of each machine have been seen. */
  const endsSeen = new Map<ModelNode, number>()
  /** The primaries of each slot and the time of their takeover, the newest first; by the name of the slot's Lease. */
  const holders = new Map<string, Called[]>()
  /** The pods that had a grant, from when until when, by the name of the slot's Lease. */
  const grants = new Map<string, { readonly uid: string; readonly from: number; until: number }[]>()

  onLeases(ground, ({ type, object, before, lease }) => {
    const { holder, epoch, grant } = lease
    const list = holders.get(keyOf(object)) ?? []
    holders.set(keyOf(object), list)
    if (list[0]?.uid !== holder.uid || list[0].epoch !== epoch)
      list.unshift({ at: time.now(), uid: holder.uid, epoch })
    const named = grants.get(keyOf(object)) ?? []
    grants.set(keyOf(object), named)
    // Once the Lease names the heir as its holder, it is a primary like any other.
    const heir = type === 'DELETED' || grant?.heir?.uid === holder.uid ? undefined : grant?.heir?.uid
    const last = named.at(-1)
    const isSame = last?.uid === heir && before?.epoch === epoch && last?.until === Number.POSITIVE_INFINITY
    // Nothing tells a heir that its Lease is gone while its node does not reach the API server. Its pod goes with the Lease, and no
    // Service leads to it.
    if (last !== undefined && !isSame && type !== 'DELETED') last.until = Math.min(last.until, time.now())
    if (heir !== undefined && !isSame)
      named.push({ uid: heir, from: time.now(), until: Number.POSITIVE_INFINITY })
    const had = before?.grant?.heir?.uid
    if (before === undefined || had === undefined || before.incarnation !== lease.incarnation) return
    const isAnother = holder.uid !== before.holder.uid && holder.uid !== had
    const taken = thaws.find(
      ({ pod, slot, epoch: of }) =>
        pod.uid === had && of <= before.epoch && slotName(slot) === slotName(lease),
    )
    const now = running(cluster).find(({ pod, container }) => pod.uid === had && container !== 'proxy')
    // One that announces itself has told the API server, so that counts however long its node has been away.
    const isAnnounced = before.grant?.isAnnounced === true
    const isKnown = now !== undefined && (isAnnounced || health.cutForMs(now.node) < lostMs)
    if (isAnother && taken !== undefined && isKnown)
      violate(
        'GrantBroken',
        `${slotName(lease)} ${epoch}`,
        `${holder.name} gets ${slotName(lease)}, which ${now.pod.name} on ${now.node.machine.name} has by its grant`,
      )
  })
  const look = () => {
    for (const node of nodes) {
      const { endings } = node.machine
      for (const { at, uid, by } of endings.slice(endsSeen.get(node) ?? 0)) {
        const isHeir = [...grants.values()].some(each =>
          each.some(one => one.uid === uid && one.from <= at && one.until === Number.POSITIVE_INFINITY),
        )
        const isTaken = thaws.some(({ pod }) => pod.uid === uid)
        if (by === 'agent' && isHeir && isTaken && !fates.isBroken(uid))
          violate(
            'GrantBroken',
            `${uid} ends`,
            `the agent of ${node.machine.name} ends ${uid}, which has a slot by its grant`,
          )
      }
      endsSeen.set(node, endings.length)
    }
  }
  const atThaw = ({ at, pod, slot, epoch }: Thawed) => {
    const key = keyOf({ metadata: slot })
    const called = holders.get(key) ?? []
    const isCalled = called.some(
      (one, index) =>
        one.uid === pod.uid &&
        one.at <= at &&
        (called[index - 1]?.at ?? Number.POSITIVE_INFINITY) >= at - bounds.actMs,
    )
    const isGranted = (grants.get(key) ?? []).some(
      ({ uid, from, until }) => uid === pod.uid && from <= at && at <= until + bounds.actMs,
    )
    if (!isCalled && !isGranted)
      violate(
        'NotCalled',
        `${slotName(slot)} ${pod.uid} ${epoch}`,
        `${pod.name} goes on stage, and the slot is another's`,
      )
  }
  return { atThaw, look }
}
