/**
 * Which additions survive. The memory of a slot is a line of additions: each has a number and follows another one. A
 * takeover cuts the end of the line off, and the successor continues from there. Additions that were cut off never come back.
 */
import type { Facts, Served, SlotFacts } from './facts.ts'
import { nameOf, seconds, type Violation } from './violation.ts'

export function lines(facts: Facts, of: SlotFacts): Violation[] {
  const found: Violation[] = []
  /** Additions in the memory of the latest epoch so far, by number. */
  let line: Served[] = []
  /** Words of additions that a takeover has cut off, with the epoch that did. */
  const cut = new Map<string, { readonly call: Served; readonly by: number }>()
  for (const epoch of new Set(of.served.map(call => call.epoch).toSorted((a, b) => a - b))) {
    const own = of.served
      .filter(call => call.epoch === epoch)
      .toSorted((a, b) => a.answer.count - b.answer.count)
    found.push(...withinEpoch(facts, of, own))
    const first = own[0]
    if (first === undefined) continue
    for (const call of own) {
      const before = cut.get(call.answer.after)
      if (before !== undefined)
        found.push({
          rule: 'CameBack',
          slot: of.slot,
          says:
            `epoch ${epoch} continues with ${nameOf(call, facts.begin)} from ` +
            `${nameOf(before.call, facts.begin)}, which epoch ${before.by} did not have`,
        })
    }
    // Additions without an answer may have come before the first answer: so this is the most that it resumed with.
    const resumed = first.answer.count - 1
    const lost = line.filter(({ answer }) => answer.count > resumed)
    for (const call of lost) cut.set(call.word, { call, by: epoch })
    found.push(
      ...(isHandedOver(of, epoch) ? byMove(facts, of, lost, first) : beyondAge(facts, of, lost, first)),
    )
    line = [...line.filter(({ answer }) => answer.count <= resumed), ...own]
    found.push(...fromNowhere(facts, of, line, first))
  }
  return found
}

/** One pod counts: later calls get higher numbers, and no number comes twice. */
function withinEpoch({ begin }: Facts, { slot }: SlotFacts, own: readonly Served[]): Violation[] {
  const found: Violation[] = []
  const words = new Map(own.map(call => [call.word, call]))
  let firstEnd = Number.POSITIVE_INFINITY
  for (const [index, call] of [...own.entries()].reverse()) {
    const twin = own[index + 1]
    if (twin !== undefined && twin.answer.count === call.answer.count)
      found.push(came(slot, `the same number twice: ${nameOf(call, begin)} and ${nameOf(twin, begin)}`))
    // A call with a higher number has ended before this one began.
    else if (firstEnd < call.start)
      found.push(came(slot, `a number below one that was given before: ${nameOf(call, begin)}`))
    firstEnd = Math.min(firstEnd, call.end)
    const before = words.get(call.answer.after)
    if (before !== undefined && before.answer.count !== call.answer.count - 1)
      found.push(came(slot, `${nameOf(call, begin)} says that it follows ${nameOf(before, begin)}`))
  }
  return found
}

const came = (slot: number, says: string): Violation => ({ rule: 'CameBack', slot, says })

/** A number that is too high for the line: more than all calls could have added. */
function fromNowhere(
  { begin }: Facts,
  { slot, calls }: SlotFacts,
  line: readonly Served[],
  first: Served,
): Violation[] {
  const earlier = line.filter(({ epoch }) => epoch < first.epoch)
  const last = earlier.at(-1)
  if (last === undefined) return []
  const silent = calls.filter(({ answer, start }) => answer === undefined && start < first.end).length
  // Other calls of the new epoch that are not answered yet when this one is have lower numbers only.
  return first.answer.count > last.answer.count + silent + 1
    ? [
        came(
          slot,
          `${nameOf(first, begin)} continues from more than ${nameOf(last, begin)} and all calls since`,
        ),
      ]
    : []
}

/** Reports round ages to tenths of seconds, and a client reads its clock only after an answer. */
const roundingMs = 1_000
/** An agent's timer can be late, and each of its steps can wait for a processor: dump, transfer, report, operator. */
const steps = 4

/** @returns the age of the copies at a time, ms, by the set's own statements, with what the machine may add to it */
export function statedAge({ lateness }: Facts, { paces }: SlotFacts, at: number): number {
  const known = paces.filter(pace => pace.at <= at)
  // An agent that has just slowed down states it with its next report.
  const recent = [...known.slice(-1), ...known.filter(pace => pace.at > at - 15_000)]
  const stated = recent.reduce(
    (most, { intervalSeconds, pipelineSeconds }) => Math.max(most, intervalSeconds + pipelineSeconds),
    1,
  )
  return stated * 1000 + roundingMs + steps * lateness(at - 15_000, at)
}

/** When the memory could last be saved: the first fault that prevents it, or the latest fault before the takeover. */
function lastSaving({ faults }: Facts, { slot }: SlotFacts, first: Served): number | undefined {
  const before = faults.filter(({ at }) => at <= first.end)
  const last = before.filter(({ slots }) => slots.includes(slot)).at(-1)
  return (before.find(({ unsaved }) => unsaved.includes(slot)) ?? last)?.at
}

const isHandedOver = ({ epochs }: SlotFacts, number: number): boolean =>
  epochs.find(({ epoch }) => epoch === number)?.handedOverBy !== undefined

/** The primary was stopped before its memory was saved, so nothing that it had answered may be missing. */
function byMove({ begin }: Facts, { slot }: SlotFacts, lost: readonly Served[], first: Served): Violation[] {
  const [oldest] = lost
  if (oldest === undefined) return []
  return [
    {
      rule: 'LostByMove',
      slot,
      says:
        `epoch ${first.epoch} was handed over, began with ${nameOf(first, begin)}, and lacks ${lost.length} additions, ` +
        `the oldest ${nameOf(oldest, begin)}`,
    },
  ]
}

function beyondAge(facts: Facts, of: SlotFacts, lost: readonly Served[], first: Served): Violation[] {
  const at = lastSaving(facts, of, first) ?? lost.at(-1)?.end
  if (at === undefined) return []
  const age = statedAge(facts, of, at)
  const tooOld = lost.filter(({ end }) => end < at - age)
  const oldest = tooOld[0]
  if (oldest === undefined) return []
  return [
    {
      rule: 'LostBeyondAge',
      slot: of.slot,
      says:
        `epoch ${first.epoch} began with ${nameOf(first, facts.begin)} and lacks ${tooOld.length} additions, the oldest ` +
        `${nameOf(oldest, facts.begin)}: ${seconds(at - oldest.end)} before the fault, where ${seconds(age)} are stated`,
    },
  ]
}
