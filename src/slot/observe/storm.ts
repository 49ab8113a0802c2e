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
  /** Monotonic ms at which this process first saw it. */
  readonly at: number
}

export function createStorm(reports: Pick<Reports, 'hasWrittenSince'>, clock: Clock): Storm {
  /** Primaries that have voters, by Lease. */
  const armed = new Map<string, { readonly slot: string; readonly node: string; readonly term: number }>()
  /** By slot and node. */
  const stated = new Map<string, ReadonlyMap<string, Statement>>()
  /** The storm that holds takeovers: when this process has seen it first and last, monotonic ms. */
  let seen: { readonly first: number; readonly last: number } | undefined
  const isNow = () => {
    if (stated.size === 0) return false
    const primaries = [...armed.values()]
    const isSilent = ({ slot, node, term }: (typeof primaries)[number]) =>
      [...(stated.get(slot)?.values() ?? [])].some(
        said =>
          said.term >= term &&
          !reports.hasWrittenSince(node, said.at) &&
          clock.monotonic() - said.at < stormLastsMs,
      )
    const nodesOf = (those: typeof primaries) => new Set(those.map(({ node }) => node)).size
    return isStorm(nodesOf(primaries.filter(isSilent)), nodesOf(primaries))
  }
  const heldForMs = () => {
    const now = clock.monotonic()
    if (isNow()) seen = { first: seen?.first ?? now, last: now }
    const leftMs = seen === undefined ? 0 : seen.last + holdsMs(seen.last - seen.first) - now
    if (leftMs > 0) return leftMs
    seen = undefined
    return 0
  }
  return {
    noteLease({ type, object }) {
      const lease = type === 'deleted' ? undefined : parseSlotLease(object)
      // The primary of a slot for which its set has no place has been ended: its silence says nothing about its node.
      if (lease?.fence?.isArmed && lease.node !== undefined && lease.retainedSince === undefined)
        armed.set(keyOf(object), { slot: incarnationOf(lease), node: lease.node, term: lease.fence.term })
      else armed.delete(keyOf(object))
    },
    noteReport({ type, object }) {
      const node = object.metadata.name
      const now = new Map(
        (type === 'deleted' ? [] : slotsOf(object)).flatMap(slot =>
          slot.silentTerm === undefined ? [] : [[incarnationOf(slot), slot.silentTerm] as const],
        ),
      )
      for (const [slot, said] of stated) if (!now.has(slot) && said.has(node)) forget(stated, slot, node)
      let isNew = false
      for (const [slot, term] of now) {
        const said = stated.get(slot)
        if (said?.get(node)?.term === term) continue
        stated.set(slot, new Map([...(said ?? []), [node, { term, at: clock.monotonic() }]]))
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
