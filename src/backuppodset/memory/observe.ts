import { labels } from '../../api/labels.ts'
import { memoryNotAllowed } from '../../api/memory-permission.ts'
import type { NodeReport } from '../../api/node-report.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { reasons } from '../../api/reasons.ts'
import { parseSlotLease, type SlotLease } from '../../api/slot-lease.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { isNamed } from '../../succession/origin.ts'
import { isFinished } from '../losses.ts'
import type { ClaimReader } from './claim-reader.ts'
import { claimCaveats, claimInTheWay } from './claims.ts'
import { diskCaveats } from './disk.ts'
import { environmentCaveats } from './environment.ts'
import { type Reports, staleMs } from './reports.ts'
import { stageOf } from './stage.ts'
import type { Copy, MemoryView, NodeView, SlotMemory } from './view.ts'
import { restartsAnnotation } from './write-lease.ts'

/** Slot Leases by the set that their label names, `namespace/set`. */
export const bySet = 'set'

export const leaseIndexes: Readonly<Record<string, (lease: Lease) => readonly string[]>> = {
  [bySet]: lease => {
    const set = lease.metadata.labels?.[labels.set]
    return set === undefined ? [] : [`${lease.metadata.namespace}/${set}`]
  },
}

export interface MemoryDeps {
  readonly leases: Store<Lease>
  readonly reports: Reports
  readonly clock: Clock
  /** A pod whose deletion the API server has accepted from us. */
  readonly isDeleted: (uid: string) => boolean
  readonly claims: Pick<ClaimReader, 'of'>
  /** An administrator allows memory in this namespace. */
  readonly isPermitted: (namespace: string) => boolean
}

/** After its grace a pod that is being deleted has been killed; its node may be slow to say so, ms. */
const afterGraceMs = 2_000

export interface SlotLeaseObject {
  readonly lease: SlotLease
  readonly object: Lease
}

export const slotLeasesOf = (leases: Store<Lease>, setKey: string): readonly SlotLeaseObject[] =>
  leases.by(bySet, setKey).flatMap(object => {
    const lease = parseSlotLease(object)
    return lease === undefined || object.metadata.deletionTimestamp !== undefined ? [] : [{ lease, object }]
  })

/** What Leases and reports say of a set's slots. */
export function observeMemory(
  set: ParsedSet & { readonly memory: NonNullable<ParsedSet['memory']> },
  podByUid: (uid: string) => Pod | undefined,
  deps: MemoryDeps,
): MemoryView {
  const setKey = `${set.namespace}/${set.name}`
  const told = deps.reports.ofSet(setKey)
  const slots = slotLeasesOf(deps.leases, setKey).map(({ lease, object }): [number, SlotMemory] => {
    const here = told.filter(
      ({ node, slot }) => slot.slot === lease.slot && slot.life === lease.life && isNamed(lease, node),
    )
    const copiesOf = here
      .filter(({ slot }) => slot.role === 'holder' && slot.generation > 0)
      .map(
        ({ node, slot, seenAt }): Copy => ({
          node,
          report: slot,
          seenAt,
          stale: deps.reports.silentFor(node) > staleMs,
        }),
      )
      .sort((a, b) => (a.node < b.node ? -1 : 1))
    return [
      lease.slot,
      {
        lease,
        uid: object.metadata.uid,
        resourceVersion: object.metadata.resourceVersion,
        restarts: natural(object.metadata.annotations?.[restartsAnnotation]),
        holderGoesBy: goesBy(podByUid(lease.holder.uid), deps),
        source: here.find(({ node, slot }) => slot.role === 'source' && node === lease.node)?.slot,
        copies: copiesOf,
      },
    ]
  })
  const nodes = new Map(
    deps.reports
      .all()
      .map(report => [report.metadata.name, nodeView(report, deps.reports)] as const)
      .sort(),
  )
  const claims = deps.claims.of(set)
  const isKept = slots.some(([, { lease }]) => lease.holders.length > 0)
  return {
    slots: new Map(slots.sort(([a], [b]) => a - b)),
    copies: set.memory.copies,
    nodes,
    refused: deps.isPermitted(set.namespace)
      ? claimInTheWay(claims, isKept)
      : { reason: reasons.memoryNotAllowed, message: memoryNotAllowed },
    caveats: [
      ...(set.memory.disk
        ? diskCaveats(
            slots.map(([, slot]) => slot),
            nodes,
          )
        : []),
      ...claimCaveats(claims),
      ...environmentCaveats(set.template, set.memory.containers),
    ],
  }
}

/** Until when to wait for the word that a primary which is being deleted has stopped. */
function goesBy(pod: Pod | undefined, { isDeleted, clock }: MemoryDeps): number | undefined {
  if (pod === undefined || isFinished(pod) || stageOf(pod).died) return undefined
  // Called, and never on stage, as a cold backup whose gate stayed silent: nothing of it has to be stopped first.
  const { understudy, serving } = stageOf(pod)
  if (understudy && !serving && pod.metadata.labels?.[labels.type] !== 'primary') return undefined
  const { deletionTimestamp, uid } = pod.metadata
  if (deletionTimestamp === undefined) return isDeleted(uid) ? clock.now() + afterGraceMs : undefined
  return (Date.parse(deletionTimestamp) || 0) + afterGraceMs
}

function nodeView(report: NodeReport, reports: Reports): NodeView {
  const { name } = report.metadata
  const failing = report.status?.checks.find(check => !check.ok)
  const silent = reports.silentFor(name) > staleMs
  return {
    name,
    ready: report.status?.ready === true && !silent,
    problem: silent
      ? `its agent has been silent for more than ${staleMs / 1000} s: look at its pod's log`
      : failing && `${failing.name}: ${failing.message}${failing.cure ? `; ${failing.cure}` : ''}`,
    machine: report.status,
    signer: report.status?.signs === true ? report.status.fingerprint : undefined,
    diskTrouble: report.status?.disk?.reason,
  }
}

const natural = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
