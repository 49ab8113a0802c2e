import { type NodeReport, type SlotReport, silencesAnnotation } from '../../api/node-report.ts'
import { type SlotKey, splitNumber } from '../../api/slot-key.ts'
import type { Clock } from '../../kube/clock.ts'
import { isEqual } from '../../kube/equal.ts'
import type { Change, Store } from '../../kube/store.ts'
import type { NodeVote } from '../decide/memory-view.ts'
import { natural } from './candidate.ts'

/** Index of node reports by the sets whose slots they name, `namespace/set`. */
export const bySlotSet = 'slotSet'

export const reportIndexes: Readonly<Record<string, (report: NodeReport) => readonly string[]>> = {
  [bySlotSet]: report => [...setsNamedIn(report)],
}

/** Returns the sets whose slots a report names, `namespace/set`. */
export const setsNamedIn = (report: NodeReport): ReadonlySet<string> =>
  new Set(slotsOf(report).flatMap(slot => setKeyOf(slot) ?? []))

/** An agent that has been silent for this long may be gone, ms. */
export const staleMs = 30_000

/** The reports of nodes, and since when this process knows them: ages must not depend on the clocks of nodes. */
export interface Reports {
  /** To be called with every change of a report, before any other method. */
  note(change: Change<NodeReport>): void
  ofSet(setKey: string): readonly {
    readonly node: string
    readonly slot: SlotReport
    readonly seenAt: number
    /** By the clock of the node, ms. */
    readonly writtenAt: number | undefined
  }[]
  all(): readonly NodeReport[]
  /** Ms since the agent last wrote, also by the time in a report that is older than this process. */
  silentFor(node: string): number
  /** Ms for which this process has seen no write of the agent, by its own clock alone. */
  unheardFor(node: string): number
  /** True if this process has seen the agent write after this moment, monotonic ms. */
  hasWrittenSince(node: string, at: number): boolean
  /** Undefined: the node has no report. */
  voteOf(node: string): NodeVote | undefined
  /** True if the agent has reported, and has been silent for longer than `staleMs` since. */
  isSilent(node: string): boolean
  /** Ms since the node was last seen able to keep memory; if it never was, since its first report. */
  unableFor(node: string): number
  /** True if the slots of its report are all that the node keeps; undefined if its agent does not say. */
  knows(node: string): boolean | undefined
}

export function createReports(store: Store<NodeReport>, clock: Clock): Reports {
  const lastNews = new Map<string, number>()
  const lastAble = new Map<string, number>()
  /** By node: when this process saw a report of its agent, and whether it was written in that moment. */
  const heard = new Map<string, { readonly at: number; readonly isWrite: boolean }>()
  // By node and incarnation of the slot: its present generation, and since when this process has seen that.
  const seen = new Map<string, Map<string, { readonly generation: number; readonly at: number }>>()
  return {
    note({ type, object, old, initial }) {
      const node = object.metadata.name
      if (type === 'deleted') {
        lastNews.delete(node)
        lastAble.delete(node)
        seen.delete(node)
        heard.delete(node)
        return
      }
      // The operator writes annotations of reports itself.
      if (old !== undefined && isWrittenBefore(old, object)) return
      heard.set(node, { at: clock.monotonic(), isWrite: !initial })
      // A report from before our start may be old; only then does its own timestamp count.
      const age = initial ? Math.max(0, clock.now() - (Date.parse(object.status?.updatedAt ?? '') || 0)) : 0
      const at = clock.monotonic() - age
      lastNews.set(node, at)
      if (object.status?.ready === true || !lastAble.has(node)) lastAble.set(node, at)
      const before = seen.get(node)
      seen.set(
        node,
        new Map(
          slotsOf(object).map(slot => {
            const known = before?.get(incarnationOf(slot))
            const isKnown = known?.generation === slot.generation
            return [incarnationOf(slot), isKnown ? known : { generation: slot.generation, at }]
          }),
        ),
      )
    },
    ofSet: setKey =>
      store.by(bySlotSet, setKey).flatMap(report =>
        slotsOf(report)
          .filter(slot => setKeyOf(slot) === setKey)
          .map(slot => {
            const node = report.metadata.name
            const seenAt = seen.get(node)?.get(incarnationOf(slot))?.at ?? clock.monotonic()
            return { node, slot, seenAt, writtenAt: Date.parse(report.status?.updatedAt ?? '') || undefined }
          }),
      ),
    all: () => store.list(),
    isSilent: node => {
      const at = lastNews.get(node)
      return at !== undefined && clock.monotonic() - at > staleMs
    },
    unableFor: node => clock.monotonic() - (lastAble.get(node) ?? Number.NEGATIVE_INFINITY),
    unheardFor: node => clock.monotonic() - (heard.get(node)?.at ?? Number.NEGATIVE_INFINITY),
    hasWrittenSince(node, at) {
      const last = heard.get(node)
      return last?.isWrite === true && last.at > at
    },
    voteOf(node) {
      const report = store.get(node)
      return report && voteIn(report)
    },
    knows: node => store.get(node)?.status?.slotsKnown,
    silentFor: node => clock.monotonic() - (lastNews.get(node) ?? Number.NEGATIVE_INFINITY),
  }
}

const isWrittenBefore = (old: NodeReport, { status }: NodeReport): boolean =>
  old.status?.updatedAt === status?.updatedAt

export const voteIn = ({
  metadata: { uid, resourceVersion, annotations },
  status,
}: NodeReport): NodeVote => ({
  run: status?.heartbeats?.run,
  ...{ uid, resourceVersion },
  silences: natural(annotations?.[silencesAnnotation]) ?? 0,
})

export const slotsOf = (report: NodeReport): readonly SlotReport[] => report.status?.slots ?? []
export const incarnationOf = ({ namespace, name, incarnation }: SlotKey): string =>
  `${namespace}/${name}/${incarnation}`

/** Undefined: the slot is not of a set. */
function setKeyOf({ namespace, name }: SlotReport): string | undefined {
  const numbered = splitNumber(name)
  return numbered && `${namespace}/${numbered.base}`
}

/** Returns the sets with a slot about whose primary this report says something else than before. */
export function votesIn(change: Change<NodeReport>): ReadonlySet<string> {
  const wordsOf = (report: NodeReport | undefined) =>
    new Map(
      (report ? slotsOf(report) : []).map(slot => [
        incarnationOf(slot),
        { set: setKeyOf(slot), word: wordOf(slot) },
      ]),
    )
  const before = wordsOf(change.old)
  const after = wordsOf(change.type === 'deleted' ? undefined : change.object)
  const isSameVoter = isEqual(votingIn(change.old), votingIn(change.object))
  const changed = [...after]
    .filter(([slot, { word }]) => !isSameVoter || (before.get(slot)?.word ?? nothingSaid) !== word)
    .flatMap(([, { set }]) => set ?? [])
  return new Set(changed)
}

const wordOf = ({
  silentTerm,
  suspectTerm,
  acknowledged,
  ended,
  grant,
}: Pick<SlotReport, 'silentTerm' | 'suspectTerm' | 'acknowledged' | 'ended' | 'grant'>): string =>
  [
    silentTerm,
    suspectTerm,
    acknowledged?.term,
    acknowledged?.version,
    ended,
    grant?.closed,
    grant?.used,
  ].join()

const nothingSaid = wordOf({})

/** As in `NodeVote`, without the version of the report. */
const votingIn = (report: NodeReport | undefined) => {
  const { resourceVersion: _, ...vote } = report ? voteIn(report) : { resourceVersion: '' }
  return vote
}

/** Returns the sets for which a report changed something; `urgent` if more than the generation, or its copy on a disk, changed. */
export function setsIn(change: Change<NodeReport>): ReadonlyMap<string, { readonly urgent: boolean }> {
  const before = change.old === undefined ? [] : slotsOf(change.old)
  const after = change.type === 'deleted' ? [] : slotsOf(change.object)
  const sets = new Map<string, { urgent: boolean }>()
  const compare = (from: readonly SlotReport[], to: readonly SlotReport[]) => {
    const others = new Map(to.map(slot => [incarnationOf(slot), slot]))
    for (const slot of from) {
      const other = others.get(incarnationOf(slot))
      const isUrgent =
        other?.usable !== slot.usable ||
        other?.understudyUid !== slot.understudyUid ||
        other?.role !== slot.role ||
        // A primary stays stopped until the operator acts on it.
        other?.final !== slot.final ||
        other?.handoverPaused !== slot.handoverPaused ||
        // An unready primary gets time to answer from when it runs again.
        other?.fenced !== slot.fenced ||
        other?.reason !== slot.reason
      if (!isUrgent && other?.generation === slot.generation && other.diskReason === slot.diskReason) continue
      const key = setKeyOf(slot)
      if (key === undefined) continue
      sets.set(key, { urgent: isUrgent || (sets.get(key)?.urgent ?? false) })
    }
  }
  compare(before, after)
  compare(after, before)
  return sets
}
