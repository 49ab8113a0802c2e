/** The grants of one slot, from the reports of agents and the pod that the Lease names. */
import { type GrantHeir, grantsOver } from '../../api/grant.ts'
import type { SlotReport } from '../../api/node-report.ts'
import { isSameSlot } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Pod } from '../../kube/resources.ts'
import { timelyMs } from '../decide/deadlines.ts'
import { grantStateOf, type HeirState, type SaidOnPod } from '../decide/grant.ts'
import type { GrantState } from '../decide/grant-state.ts'
import { isFinished } from './candidate.ts'
import type { Reports } from './reports.ts'
import { servingOf, type stageOf } from './stage.ts'

interface GrantDeps {
  readonly reports: Pick<Reports, 'unheardFor'>
  readonly podByUid: (uid: string) => Pod | undefined
  readonly stageOf: typeof stageOf
  /**
   * After so long without a word of an agent, the pods of its node count as lost, as Kubernetes sees it, ms; undefined:
   * the node is there, by its Node; 0: it is out of service.
   */
  readonly lostAfterMs: (node: string) => number | undefined
}

/** @param told what all nodes report about slots of the owner. */
export function grantsOf(
  lease: SlotLease,
  told: readonly { readonly node: string; readonly slot: SlotReport }[],
  deps: GrantDeps,
): GrantState {
  const { grant, node: source = '', holders } = lease
  const named = new Set([source, grant?.source, grant?.heir?.node, ...holders])
  const words = new Map(
    told.flatMap(({ node, slot }) =>
      slot.grant !== undefined && named.has(node) && isSameSlot(slot, lease)
        ? [[node, slot.grant] as const]
        : [],
    ),
  )
  const isEnded = ({ uid, node }: GrantHeir) =>
    told.some(each => each.node === node && each.slot.ended === uid && isSameSlot(each.slot, lease))
  return grantStateOf(lease, {
    words,
    heirState: heir => (isEnded(heir) ? 'Over' : heirStateOf(heir, deps)),
    onPod: ({ uid }) => saidOnPod(deps.podByUid(uid), lease),
    isSourceSilent: deps.reports.unheardFor(source) > timelyMs,
  })
}

/** The conditions as they are: what else is known of the pod says nothing about the order of the two words. */
function saidOnPod(pod: Pod | undefined, { incarnation }: SlotLease): SaidOnPod {
  if (pod === undefined) return { over: 0, isTold: false }
  const { annotations, name, uid, resourceVersion } = pod.metadata
  const { serving, resuming } = servingOf(pod)
  return {
    over: grantsOver(annotations, incarnation),
    isTold: serving || resuming,
    pod: { name, uid, resourceVersion },
  }
}

function heirStateOf(
  { uid, node }: GrantHeir,
  { reports, podByUid, stageOf, lostAfterMs }: GrantDeps,
): HeirState {
  const pod = podByUid(uid)
  // While the agent writes, it says itself whether the pod may still run.
  if (pod === undefined) return reports.unheardFor(node) > timelyMs ? 'Over' : 'Waits'
  const { died, serving } = stageOf(pod)
  // An administrator has said that a node out of service runs nothing.
  if (died || isFinished(pod) || lostAfterMs(node) === 0) return 'Over'
  if (isNodeLost(node, { reports, lostAfterMs })) return 'NodeLost'
  return serving ? 'OnStage' : 'Waits'
}

/** True if the pods of this node count as lost. */
export function isNodeLost(
  node: string,
  { reports, lostAfterMs }: Pick<GrantDeps, 'reports' | 'lostAfterMs'>,
): boolean {
  const lostMs = lostAfterMs(node)
  return lostMs !== undefined && reports.unheardFor(node) > lostMs
}
