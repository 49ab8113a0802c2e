import { isOfSource } from '../../api/clone-of.ts'
import { memoryNotAllowed } from '../../api/memory-permission.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { isOutOfService } from '../../api/out-of-service.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { reasons } from '../../api/reasons.ts'
import type { Lease, Node, Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { timelyMs } from '../../slot/decide/deadlines.ts'
import { mayRunOn, mayStartOn, nodeFacts } from '../../slot/decide/may-run-on.ts'
import type { MemoryView, NodeView, SlotMemory, Word } from '../../slot/decide/memory-view.ts'
import { nodeView } from '../../slot/observe/node-view.ts'
import { observeSlot, type SlotDeps } from '../../slot/observe/observe-slot.ts'
import type { Since } from '../../slot/observe/since.ts'
import { foreignSlotsOf, slotLeasesOf } from '../../slot/observe/slot-leases.ts'
import { stageOf } from '../../slot/observe/stage.ts'
import type { Storm } from '../../slot/observe/storm.ts'
import { diskCaveats } from '../../slot/report/disk.ts'
import { holderCaveats } from '../../slot/report/holders.ts'
import type { ClaimReader } from './claim-reader.ts'
import { type Claim, claimCaveats, claimInTheWay } from './claims.ts'
import { cloneSourceOf } from './clone-source.ts'
import { environmentCaveats } from './environment.ts'
import { isPermitted, type Permitted } from './permission.ts'

type SetWithMemory = ParsedSet & { readonly memory: NonNullable<ParsedSet['memory']> }

/** The parts of a set's record that tell of its memory. */
export interface MemoryRecord extends Pick<SlotDeps, 'handoverTimes'> {
  readonly claims: Pick<ClaimReader, 'of'>
  readonly since: Pick<Since, 'pass'>
}

export interface MemoryDeps extends SlotDeps, MemoryRecord {
  readonly leases: Store<Lease>
  /** Undefined: there is no such node, or not yet. An agent that reports from it has no labels and taints then. */
  readonly nodeOf: (name: string) => Node | undefined
  readonly permitted: Permitted
  readonly storm: Pick<Storm, 'heldForMs'>
}

/**
 * A claim that is recreated, or a label that is put back, costs no memory: memory that must not be kept stays for this
 * long, ms.
 */
const refusalMs = 300_000

/** Returns what Leases and reports say about a set's slots. */
export function observeMemory(
  set: SetWithMemory,
  podByUid: (uid: string) => Pod | undefined,
  deps: MemoryDeps & { readonly stageOf?: typeof stageOf },
): MemoryView {
  const since = deps.since.pass()
  const ours = slotLeasesOf(deps.leases, set)
  const claims = deps.claims.of(set)
  const isAssigned = ours.some(({ lease }) => lease.holders.length > 0)
  const refused = isPermitted(deps.permitted, set.namespace)
    ? claimInTheWay(claims, isAssigned)
    : { reason: reasons.memoryNotAllowed, message: memoryNotAllowed }
  const refusedAt = since('refused', refused !== undefined)
  const refusedForLong = refusedAt !== undefined && deps.clock.monotonic() - refusedAt >= refusalMs
  const pass = {
    ...{ deps, podByUid, since, refusedForLong, intervalMs: set.memory.intervalMs },
    stageOf: deps.stageOf ?? stageOf,
    lostAfterMs: lostAfter(set, deps),
    told: deps.reports.ofSet(`${set.namespace}/${set.name}`),
  }
  const slots = ours.map(each => observeSlot(each, pass)).sort((a, b) => a.lease.slot - b.lease.slot)
  const nodes = nodesFor(set, deps)
  const own = ours.map(({ lease }) => lease)
  return {
    slots: new Map(slots.map(slot => [slot.lease.slot, slot])),
    copies: set.memory.copies,
    giveUpAfterMs: set.memory.giveUpAfterMs,
    retainMs: set.memory.retainMs,
    ...(set.failover.grant !== 'None' && { grantee: set.failover.grant }),
    nodeTimeoutMs: set.failover.fencing === 'None' ? undefined : set.failover.nodeTimeoutMs,
    heldMs: deps.storm.heldForMs(),
    nodes,
    foreign: foreignSlotsOf(deps.leases, set),
    ...cloningOf(set, own, nodes, { ...deps, since }),
    refused,
    refusedForLong,
    caveats: caveatsOf(set, slots, nodes, claims),
  }
}

/** Returns what new slots begin with, while one may need it: a set whose slots have all begun looks for nothing. */
function cloningOf(
  set: SetWithMemory,
  own: readonly NumberedSlotLease[],
  nodes: ReadonlyMap<string, NodeView>,
  { since, ...deps }: Omit<MemoryDeps, 'since'> & { readonly since: ReturnType<Since['pass']> },
): Pick<MemoryView, 'cloneSource' | 'cloningSince'> {
  const begun = own.filter(lease => !isOfSource(lease)).length
  if (set.cloneFrom === undefined || (begun === own.length && begun >= set.replicas)) return {}
  return {
    cloneSource: cloneSourceOf({ ...set, own, nodes }, set.cloneFrom, deps),
    cloningSince: since(`cloning/${begun}`, !set.paused && !set.suspended),
  }
}

/** Kubernetes marks the pods of a silent node after about this time, ms. */
const nodeGraceMs = 50_000

/** Returns after which silence of an agent the pods of its node count as lost, like primaries without voters. */
const lostAfter =
  ({ failover: { unreadySeconds } }: SetWithMemory, { nodeOf }: Pick<MemoryDeps, 'nodeOf'>) =>
  (name: string): number | undefined => {
    const node = nodeOf(name)
    const taints = node?.spec?.taints
    if (isOutOfService(taints)) return 0
    // The agent may be away, although the node is there.
    const isThere = node !== undefined && taints?.some(({ key }) => lostTaints.includes(key)) !== true
    return isThere || unreadySeconds === 0 ? undefined : nodeGraceMs + unreadySeconds * 1000
  }

const lostTaints: readonly string[] = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready']

const caveatsOf = (
  { memory, template }: SetWithMemory,
  slots: readonly SlotMemory[],
  nodes: ReadonlyMap<string, NodeView>,
  claims: readonly Claim[],
): readonly Word[] => [
  ...(memory.disk ? diskCaveats(slots, nodes) : []),
  ...holderCaveats(
    slots.map(({ lease }) => lease),
    memory.copies,
    nodes,
  ),
  ...claimCaveats(claims),
  ...environmentCaveats(template, memory.containers),
]

function nodesFor(set: SetWithMemory, { reports, nodeOf }: MemoryDeps): ReadonlyMap<string, NodeView> {
  const views = reports.all().map(report => {
    const { name } = report.metadata
    const { spec } = set.template
    const facts = nodeFacts(name, nodeOf(name))
    const forbidden = set.memory.matchingHolders && !mayRunOn(spec, facts)
    const outOfService = isOutOfService(facts.taints)
    const closed = outOfService || !mayStartOn(spec, facts) || reports.silentFor(name) > timelyMs
    return [name, { ...nodeView(report, reports), forbidden, outOfService, closed }] as const
  })
  return new Map(views.sort())
}
