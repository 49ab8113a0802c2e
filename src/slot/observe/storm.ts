/** How many nodes are silent at once, over all sets: see `src/slot/decide/fence/storm.ts`. */
import type { NodeReport } from '../../api/node-report.ts'
import { parseSlotLease } from '../../api/slot-lease.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOf } from '../../kube/object.ts'
import type { Lease } from '../../kube/resources.ts'
import type { Change } from '../../kube/store.ts'
import { holdsMs, isStorm, stormLastsMs } from '../decide/fence/storm.ts'
import { incarnationOf, type Reports, slotsOf } from './reports.ts'

export interface Storm {
  /** To be called with every change of a Lease. */
  noteLease(change: Change<Lease>): void
  /** To be called with every change of a report, after `Reports.note`. */
  noteReport(change: Change<NodeReport>): void
  /** Ms for which no pod takes over by votes; 0: it may. */
  heldForMs(): number
}

interface Statement {
  readonly term: number
  /** False: a suspicion. A statement follows it, or it is taken back. */
  readonly isStated: boolean
  /** Monotonic ms at which this process first saw it. */
  readonly at: number
}

/** For so long no pod takes over after a sign of a storm by suspicions, ms; it is looked at again then. */
const suspicionHoldsMs = 250

export function createStorm(reports: Pick<Reports, 'hasWrittenSince'>, clock: Clock): Storm {
  /** Primaries that have voters, by Lease. */
  const armed = new Map<
    string,
    {
      readonly slot: string
      readonly node: string
      readonly term: number
      /** The longest age of a suspicion that counts, ms: a node that has died leaves one in its report. */
      readonly suspicionMs: number
    }
  >()
  /** By slot and node. */
  const stated = new Map<string, ReadonlyMap<string, Statement>>()
  /** The storm that holds takeovers: when this process has seen it first and last, monotonic ms. */
  let seen: { readonly first: number; readonly last: number } | undefined
  const isNow = (withSuspicions: boolean) => {
    if (stated.size === 0) return false
    const primaries = [...armed.values()]
    const isSilent = ({ slot, node, term, suspicionMs }: (typeof primaries)[number]) =>
      [...(stated.get(slot)?.values() ?? [])].some(
        said =>
          said.term >= term &&
          (said.isStated || withSuspicions) &&
          !reports.hasWrittenSince(node, said.at) &&
          clock.monotonic() - said.at < (said.isStated ? stormLastsMs : suspicionMs),
      )
    const nodesOf = (those: typeof primaries) => new Set(those.map(({ node }) => node)).size
    return isStorm(nodesOf(primaries.filter(isSilent)), nodesOf(primaries))
  }
  const heldForMs = () => {
    const now = clock.monotonic()
    if (isNow(false)) seen = { first: seen?.first ?? now, last: now }
    const leftMs = seen === undefined ? 0 : seen.last + holdsMs(seen.last - seen.first) - now
    if (leftMs > 0) return leftMs
    seen = undefined
    // It promises nothing, so it holds nothing up once it is over.
    return isNow(true) ? suspicionHoldsMs : 0
  }
  return {
    noteLease({ type, object }) {
      const lease = type === 'deleted' ? undefined : parseSlotLease(object)
      // The primary of a slot for which its set has no place has been ended: its silence says nothing about its node.
      if (lease?.fence?.isArmed && lease.node !== undefined && lease.retainedSince === undefined)
        armed.set(keyOf(object), {
          ...{ slot: incarnationOf(lease), node: lease.node, term: lease.fence.term },
          suspicionMs: lease.fence.timeoutMs / 2,
        })
      else armed.delete(keyOf(object))
    },
    noteReport({ type, object }) {
      const node = object.metadata.name
      const now = new Map(
        (type === 'deleted' ? [] : slotsOf(object)).flatMap(slot => {
          const term = slot.suspectTerm ?? slot.silentTerm
          const isStated = slot.suspectTerm === undefined
          return term === undefined ? [] : [[incarnationOf(slot), { term, isStated }] as const]
        }),
      )
      for (const [slot, said] of stated) if (!now.has(slot) && said.has(node)) forget(stated, slot, node)
      let isNew = false
      for (const [slot, { term, isStated }] of now) {
        const all = stated.get(slot)
        const said = all?.get(node)
        if (said?.term === term && said.isStated === isStated) continue
        stated.set(slot, new Map([...(all ?? []), [node, { term, isStated, at: clock.monotonic() }]]))
        isNew = true
      }
      // Between two passes a storm may begin and end. Its end is the last moment in which this saw it.
      if (isNew || seen !== undefined) heldForMs()
    },
    heldForMs,
  }
}

function forget(stated: Map<string, ReadonlyMap<string, Statement>>, slot: string, node: string): void {
  const left = new Map([...(stated.get(slot) ?? [])].filter(([name]) => name !== node))
  if (left.size === 0) stated.delete(slot)
  else stated.set(slot, left)
}
