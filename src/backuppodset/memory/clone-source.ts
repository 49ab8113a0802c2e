/** The memory with which new slots of a set with `cloneFrom` begin. */
import { type CloneOf, isCloning } from '../../api/clone-of.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { reasons } from '../../api/reasons.ts'
import { isSameSlot } from '../../api/slot-key.ts'
import type { Lease } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { newestTold } from '../../slot/decide/age.ts'
import { timelyMs } from '../../slot/decide/deadlines.ts'
import type { CloneSource, NodeView, NoSource, Word } from '../../slot/decide/memory-view.ts'
import { isNamed } from '../../slot/decide/origin.ts'
import type { Reports } from '../../slot/observe/reports.ts'
import { byPrimary, presentLeases } from '../../slot/observe/slot-leases.ts'

interface Deps {
  readonly leases: Pick<Store<Lease>, 'get' | 'by'>
  readonly reports: Pick<Reports, 'ofSet' | 'silentFor' | 'knows'>
}

/** The set that asks, with what is known of its own slots and of all nodes. */
export interface Cloning extends Pick<ParsedSet, 'namespace' | 'name'> {
  readonly own: readonly NumberedSlotLease[]
  readonly nodes: ReadonlyMap<string, NodeView>
}

/** Returns the saved memory of the pod's slot on the nodes that can copy it, best first, or why there is none. */
export function cloneSourceOf(set: Cloning, pod: string, deps: Deps): CloneSource | NoSource {
  const { namespace, nodes } = set
  const lease = sourceLease(set, pod, deps)
  if (lease === undefined) return noSource(set, pod)
  const { name, incarnation, restoreHash, holder } = lease
  const slot = { name, incarnation }
  if (lease.unsaved === true)
    return {
      slot,
      reason: reasons.cloneNotSaved,
      message: `the memory of pod ${pod} is not saved any more: the condition CheckpointReady of ${lease.group} says why`,
    }
  const { reports } = deps
  const kept = reports
    .ofSet(`${namespace}/${lease.group}`)
    .filter(({ node, slot }) => isSameSlot(slot, lease) && isNamed(lease, node))
    .flatMap(({ node, slot: { epoch, generation, takenAt } }) =>
      // A node that claims an epoch which has not begun would be preferred to all others.
      generation > 0 && epoch !== undefined && epoch <= lease.epoch
        ? [{ node, epoch, generation, takenAt: Date.parse(takenAt ?? '') || 0 }]
        : [],
    )
    .map(told => ({ ...told, obstacle: obstacleAt(told.node, nodes, reports) }))
    .sort(
      (a, b) =>
        b.epoch - a.epoch ||
        // It has saved this epoch itself. Another node signs a copy that it could have changed.
        Number(isSigner(lease, b, nodes)) - Number(isSigner(lease, a, nodes)) ||
        newestTold(a, b) ||
        (a.node < b.node ? -1 : 1),
    )
  const able = kept.filter(({ obstacle }) => obstacle === undefined)
  if (able.length === 0) return { slot, ...notSaved(pod, kept) }
  return {
    ...{ slot, pod, podUid: holder.uid, restoreHash },
    copies: able.map(
      ({ node, epoch, generation }): CloneOf => ({ name, incarnation, epoch, generation, node }),
    ),
  }
}

/**
 * Returns the Lease of the slot to copy. Once a slot of the set waits for its memory, the name of the source slot counts
 * and not the name of its pod: the source slot may have moved to another pod since. If that slot is gone, the name of the pod counts.
 */
function sourceLease(
  { namespace, name, own }: Cloning,
  pod: string,
  { leases }: Deps,
): NumberedSlotLease | undefined {
  const others = (objects: readonly Lease[]) =>
    presentLeases(objects)
      .map(({ lease }) => lease)
      .filter(lease => lease.group !== name && !isCloning(lease))
  const waiting = own.filter(isCloning).find(({ holder }) => holder.name === pod)?.cloneOf
  const known = waiting && leases.get(`${namespace}/${waiting.name}`)
  return (
    others(known ? [known] : []).find(({ incarnation }) => incarnation === waiting?.incarnation) ??
    others(leases.by(byPrimary, `${namespace}/${pod}`))[0]
  )
}

const noSource = ({ own }: Cloning, pod: string): Word => ({
  reason: reasons.noCloneSource,
  message: own.some(lease => lease.holder.name === pod && !isCloning(lease))
    ? `pod ${pod} is a primary of this set itself: name a pod of another one`
    : `pod ${pod} is no primary with memory of another set in this namespace: it may have been deleted, or its slot may have moved to another pod`,
})

/** Returns why this node cannot copy memory now, as a phrase to follow its name. */
function obstacleAt(
  name: string,
  nodes: ReadonlyMap<string, NodeView>,
  reports: Deps['reports'],
): Obstacle | undefined {
  const node = nodes.get(name)
  if (reports.silentFor(name) > timelyMs || reports.knows(name) === false)
    return { why: 'its agent is silent or starting' }
  if (node?.ready !== true || node.outOfService === true)
    return { why: node?.problem ?? 'it is out of service' }
  return node.clones === true
    ? undefined
    : { why: 'its agent is of a version that copies no memory', isOld: true }
}

interface Obstacle {
  readonly why: string
  readonly isOld?: boolean
}

const isSigner = (
  { signers = [] }: NumberedSlotLease,
  { node, epoch }: { readonly node: string; readonly epoch: number },
  nodes: ReadonlyMap<string, NodeView>,
): boolean => {
  const key = nodes.get(node)?.signer
  return key !== undefined && signers.some(each => each.epoch === epoch && each.fingerprint === key)
}

function notSaved(
  pod: string,
  kept: readonly { readonly node: string; readonly obstacle: Obstacle | undefined }[],
): Word {
  if (kept.length === 0)
    return { reason: reasons.cloneNotSaved, message: `no node reports saved memory of pod ${pod} yet` }
  const isOld = kept.some(({ obstacle }) => obstacle?.isOld)
  const where = kept.map(({ node, obstacle }) => `${node} (${obstacle?.why})`).join(', ')
  return {
    reason: isOld ? reasons.cloneUnsupported : reasons.cloneNotSaved,
    message: `no node can copy the memory of pod ${pod} now: ${where}`,
  }
}
