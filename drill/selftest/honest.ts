/**
 * A small model of a set that keeps its promises: clients add, the memory is saved at intervals, primaries die, and
 * successors resume with the newest copy. Its histories must pass every rule.
 */
import { baseOf } from '../check/facts.ts'
import type { Call, Entry, History } from '../history.ts'
import { type Random, randomOf } from '../random.ts'

export interface Shape {
  readonly seed: number
  readonly slots: number
  /** Takeovers of each slot. */
  readonly takeovers: number
  readonly intervalMs: number
  readonly pipelineMs: number
  /** Time between a death and the successor's first answer. */
  readonly outageMs: number
}

export const plain: Shape = {
  seed: 1,
  slots: 2,
  takeovers: 2,
  intervalMs: 1_000,
  pipelineMs: 200,
  outageMs: 700,
}

const everyMs = 40
/** Time in which an epoch is left alone. */
const lifeMs = 6_000

export function honest(shape: Shape): History {
  const random = randomOf(shape.seed)
  const slots = Array.from({ length: shape.slots }, (_, slot) => slot)
  const endAt = 1_000 + (shape.takeovers + 1) * (lifeMs + shape.outageMs)
  const entries = slots.flatMap(slot => slotHistory(slot, shape, random, endAt))
  const healed = endAt - lifeMs / 2
  return [
    ...entries,
    { type: 'healed', at: healed },
    { type: 'protection', at: healed + 1, isFull: true, limitMs: 60_000, says: '' },
    { type: 'end', at: endAt },
  ]
}

export const podOf = (slot: number, epoch: number): string => `pod-${slot}-${epoch}`

const lifeOf = (slot: number): number => 1_700_000_000_000 + slot

/** Memory of a process. */
interface Memory {
  readonly count: number
  readonly after: string
}

interface Saved {
  /** When a holder has it. */
  readonly usable: number
  readonly memory: Memory
}

function slotHistory(slot: number, shape: Shape, random: Random, endAt: number): Entry[] {
  const base = baseOf(slot)
  const born: Memory = { count: base, after: '' }
  const entries: Entry[] = [
    { type: 'birth', at: 0, slot, startedAt: lifeOf(slot), base },
    epochOf(slot, 1, 0),
    {
      ...{ type: 'pace', at: 0, slot },
      intervalSeconds: shape.intervalMs / 1000,
      pipelineSeconds: shape.pipelineMs / 1000,
    },
  ]
  let saved: Saved[] = [{ usable: 0, memory: born }]
  let memory = born
  let from = 0
  for (let epoch = 1; epoch <= shape.takeovers + 1; epoch += 1) {
    const isLast = epoch > shape.takeovers
    const dies = isLast ? endAt : from + lifeMs + random.between(0, shape.intervalMs)
    const lived = serve({ slot, epoch, from, until: dies, memory, shape, random })
    entries.push(...lived.calls)
    saved.push(...lived.saved)
    if (isLast) break
    entries.push({
      ...{ type: 'fault', at: dies, nemesis: 'kill', target: podOf(slot, epoch), slots: [slot] },
      ...{
        pods: [podOf(slot, epoch)],
        mayPromote: true,
        mayAnswerEmpty: false,
        unsaved: [],
        outageMs: shape.outageMs,
      },
    })
    // Copies that are not complete at the death never will be.
    saved = saved.filter(({ usable }) => usable <= dies).slice(-2)
    memory = saved.at(-1)?.memory ?? born
    from = dies + shape.outageMs
    entries.push(...refused(slot, epoch, dies, from), epochOf(slot, epoch + 1, dies + shape.outageMs / 2))
  }
  return entries
}

const epochOf = (slot: number, epoch: number, at: number): Entry => ({
  ...{ type: 'epoch', at, slot, incarnation: `life-${slot}`, epoch },
  ...{ pod: podOf(slot, epoch), uid: `uid-${slot}-${epoch}` },
})

interface Life {
  readonly slot: number
  readonly epoch: number
  readonly from: number
  readonly until: number
  readonly memory: Memory
  readonly shape: Shape
  readonly random: Random
}

function serve({ slot, epoch, from, until, memory, shape, random }: Life) {
  const calls: Call[] = []
  const saved: Saved[] = []
  let now = memory
  let nextSave = from + shape.intervalMs
  for (let at = from; at < until; at += everyMs) {
    if (at >= nextSave) {
      saved.push({ usable: at + shape.pipelineMs, memory: now })
      nextSave += shape.intervalMs
    }
    const client = random.of(['fresh', 'fresh', 'kept', 'direct'] as const)
    const word = `${slot}-${epoch}-${calls.length}`
    const start = at - random.between(0, everyMs * 2)
    const end = at + random.between(0.1, everyMs * 2)
    const call = { type: 'call', client, slot, word, start: Math.max(0, start), end } as const
    const { after } = now
    now = { count: now.count + 1, after: word }
    // The process dies before the answer is out.
    if (end >= until) calls.push({ ...call, end: until, error: 'ECONNRESET' })
    else
      calls.push({
        ...call,
        answer: { count: now.count, pod: podOf(slot, epoch), startedAt: lifeOf(slot), after },
      })
  }
  return { calls, saved }
}

/** Calls between two primaries, which none has executed. */
const refused = (slot: number, epoch: number, from: number, until: number): Call[] =>
  Array.from({ length: Math.floor((until - from) / everyMs) }, (_, index) => ({
    ...{ type: 'call', client: 'fresh', slot, word: `${slot}-${epoch}-r${index}` },
    ...{ start: from + index * everyMs, end: from + index * everyMs + 1, error: 'ECONNREFUSED' },
  }))
