/** A move: a slot is to be handed over to a pod on another node, because a Migration asks for it. */

import { leavingOf } from '../../api/leaving.ts'
import type { SlotReport } from '../../api/node-report.ts'
import type { Node } from '../../kube/resources.ts'
import { mayTake } from './errands.ts'
import { fitsMemory } from './kinds.ts'
import type { SlotMemory } from './memory-view.ts'
import type { Candidate } from './snapshot.ts'

export interface Move {
  /** Name and uid of the Migration. */
  readonly name: string
  readonly uid: string
  /** Uid of the primary that is to be replaced. */
  readonly source: string
  /** Labels of the nodes that may have the successor. */
  readonly nodeSelector: Readonly<Record<string, string>>
  /** Names of the nodes that have these labels and take pods. */
  readonly nodes: ReadonlySet<string>
  /** Nodes on which earlier moves of this primary have failed. A pod for this move runs there only if no other node takes it. */
  readonly avoid?: readonly string[]
  /** The primary is not stopped if that would last longer, ms. Undefined: however long that takes. */
  readonly maxDowntimeMs: number | undefined
}

/** Time from the end of a restore until clients reach the successor, ms: the thaw, and the endpoints. */
const switchMs = 100

/**
 * Returns how long the primary would be stopped, ms, by what its last generation took until it was complete on the
 * node of the successor. Undefined: not known.
 */
export const impliedDowntimeMs = (copy: Pick<SlotReport, 'pipelineSeconds'>): number | undefined =>
  copy.pipelineSeconds === undefined ? undefined : copy.pipelineSeconds * 1000 + switchMs

/** True unless a stop would certainly be longer than the move allows. */
export function fitsDowntime(
  { maxDowntimeMs }: Pick<Move, 'maxDowntimeMs'>,
  copy: Pick<SlotReport, 'pipelineSeconds'> | undefined,
): boolean {
  if (maxDowntimeMs === undefined) return true
  const implied = copy && impliedDowntimeMs(copy)
  return implied !== undefined && implied <= maxDowntimeMs
}

/** True if the node is known and has all these labels. */
export const hasLabels = (node: Node | undefined, wanted: Move['nodeSelector']): boolean =>
  node !== undefined &&
  Object.entries(wanted).every(([name, value]) => node.metadata.labels?.[name] === value)

/**
 * True if a slot may move to the node: it has the labels, and takes pods. The hot backups of a node that is being emptied have to
 * leave it soon, although they are heirs still.
 */
export const takesMoves = (node: Node | undefined, wanted: Move['nodeSelector']): boolean =>
  hasLabels(node, wanted) && leavingOf(node) === undefined

interface Players<Pod> {
  readonly pods: readonly Pod[]
  /** Uids of the heirs of the owner's slots. */
  readonly heirs: ReadonlySet<string | undefined>
}

/**
 * Returns the pod that takes the slot: the pod that a handover in progress names, or else the heir of the slot, or a hot
 * backup that is heir of no slot, or a pod that was made for this move. Undefined: there is none on the nodes of the move.
 */
function targetOf<Pod extends Candidate>(
  { pods, heirs }: Players<Pod>,
  lease: SlotMemory['lease'],
  { nodes }: Pick<Move, 'nodes'>,
): Pod | undefined {
  const rank = ({ uid, stage }: Pod): number | undefined => {
    if (uid === lease.handover) return 0
    if (uid === lease.heir?.uid) return 1
    if (stage?.successorOf === lease.slot) return 3
    return heirs.has(uid) ? undefined : 2
  }
  const fit = pods.flatMap(pod => {
    const at = mayBeTarget(pod, lease, nodes) ? rank(pod) : undefined
    return at === undefined ? [] : [{ pod, at }]
  })
  return fit.sort((a, b) => a.at - b.at || (a.pod.name < b.pod.name ? -1 : 1))[0]?.pod
}

/** A slot that moves, with the nodes on which it may continue. */
export interface MovingSlot {
  readonly lease: SlotMemory['lease']
  readonly move: Pick<Move, 'nodes'>
}

/**
 * Returns the pod that takes each of these slots, by number. A pod may be the heir of several slots, and takes one of them: the slot whose
 * handover has begun, or else the first of them. The others need other pods, and do not wait until that one is gone.
 */
export function targetsOf<Pod extends Candidate>(
  { pods, heirs }: Players<Pod>,
  moving: readonly MovingSlot[],
): ReadonlyMap<number, Pod> {
  const chosen = new Map<number, Pod>()
  const inOrder = [...moving].sort(
    (a, b) => Number(b.lease.handover !== undefined) - Number(a.lease.handover !== undefined),
  )
  let left = pods
  for (const { lease, move } of inOrder) {
    const target = targetOf({ pods: left, heirs }, lease, move)
    if (target === undefined) continue
    chosen.set(lease.slot, target)
    left = left.filter(pod => pod !== target)
  }
  return chosen
}

function mayBeTarget(pod: Candidate, lease: SlotMemory['lease'], nodes: Move['nodes']): boolean {
  const { kind, node, stage } = pod
  if (kind !== 'hotbackup' || stage?.understudy !== true) return false
  if (stage.failed !== undefined || stage.spoiled || !mayTake(pod, lease.slot)) return false
  if (!fitsMemory(stage.restoreHash, lease.restoreHash)) return false
  return node === undefined ? stage.successorOf === lease.slot : node !== lease.node && nodes.has(node)
}
