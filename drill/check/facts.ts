/** The history of one slot, in the order that its rules need. */
import type {
  Answer,
  Birth,
  Call,
  Epoch,
  Fault,
  Fenced,
  History,
  Move,
  Pace,
  Pause,
  Resume,
} from '../history.ts'

/** A call that was answered by the pod of an epoch. */
export interface Served extends Call {
  readonly answer: Answer
  readonly epoch: number
}

export interface SlotFacts {
  readonly slot: number
  readonly birth: Birth
  /** By their number; of several entries of one epoch the first. */
  readonly epochs: readonly Epoch[]
  /** All entries, as they came. */
  readonly leases: readonly Epoch[]
  readonly calls: readonly Call[]
  /** Answers from the slot's own memory by a pod that its Lease has named, by their end. */
  readonly served: readonly Served[]
  readonly paces: readonly Pace[]
  /** Faults that may cost this slot its primary. */
  readonly faults: readonly Fault[]
  /** Fences of its primaries, in this round. */
  readonly fenced: readonly Fenced[]
  readonly resumes: readonly Resume[]
  /** In the order of their ends. */
  readonly moves: readonly Move[]
}

export interface Facts {
  /** Beginning of the round. */
  readonly begin: number
  readonly end: number
  /** First fault; undefined: there was none. */
  readonly struck: number | undefined
  readonly healed: number | undefined
  readonly faults: readonly Fault[]
  /** From then on every primary may have too few voters, because two faults together silence two of the three. Infinity: never. */
  readonly outvotedAt: number
  readonly pauses: readonly Pause[]
  readonly slots: readonly SlotFacts[]
  /** Longest delay of a client's timer between two times, ms. */
  readonly lateness: (from: number, to: number) => number
}

/** Distance between the first numbers of two slots; no drill makes as many additions. */
export const stride = 1_000_000_000

export const baseOf = (slot: number): number => (slot + 1) * stride

export const isOfSlot = ({ base }: Birth, { count }: Answer): boolean =>
  count >= base && count < base + stride

/** Returns the voter that a primary on this node does not hear because of a fault. */
function silentFor(node: string, { silences }: Fault): string | undefined {
  if (silences === undefined || silences === 'Api') return silences
  const [one, other] = silences
  if (other === undefined) return one === node ? undefined : one
  return node === one ? other : node === other ? one : undefined
}

/** Returns when a primary on this node has lost the second of its voters; Infinity: never. */
function outvotedOn(node: string, faults: readonly Fault[]): number {
  const silent = new Set<string>()
  for (const fault of faults.toSorted((a, b) => a.at - b.at)) {
    const voter = silentFor(node, fault)
    if (voter !== undefined) silent.add(voter)
    if (silent.size > 1) return fault.at
  }
  return Number.POSITIVE_INFINITY
}

/** A node that no fault names hears as little as any other one: the empty name stands for it. */
const outvotedAt = (faults: readonly Fault[]): number =>
  least(
    ['', ...faults.flatMap(({ silences = [] }) => (silences === 'Api' ? [] : silences))].map(node =>
      outvotedOn(node, faults),
    ),
  )

export function factsOf(history: History): Facts {
  const of = <T extends History[number]['type']>(type: T) =>
    history.filter((entry): entry is Extract<History[number], { type: T }> => entry.type === type)
  const faults = of('fault')
  const late = of('late')
  const times = history.map(entry => (entry.type === 'call' ? entry.start : entry.at))
  const ends = history.map(entry => (entry.type === 'call' ? entry.end : entry.at))
  const all = {
    calls: of('call'),
    epochs: of('epoch'),
    paces: of('pace'),
    faults,
    fenced: of('fenced'),
    resumes: of('resume'),
    moves: of('move'),
  }
  return {
    begin: of('round')[0]?.at ?? least(times),
    end: of('end')[0]?.at ?? -least(ends.map(at => -at)),
    struck: faults.length === 0 ? undefined : least(faults.map(({ at }) => at)),
    healed: of('healed')[0]?.at,
    faults,
    outvotedAt: outvotedAt(faults),
    pauses: of('pause'),
    slots: of('birth').map(birth => slotFacts(birth, all)),
    lateness: (from, to) =>
      late.reduce((most, { at, ms }) => (at >= from && at - ms <= to ? Math.max(most, ms) : most), 0),
  }
}

interface All {
  readonly calls: readonly Call[]
  readonly epochs: readonly Epoch[]
  readonly paces: readonly Pace[]
  readonly faults: readonly Fault[]
  readonly fenced: readonly Fenced[]
  readonly resumes: readonly Resume[]
  readonly moves: readonly Move[]
}

function slotFacts(birth: Birth, all: All): SlotFacts {
  const { slot } = birth
  const mine = <T extends { readonly slot: number }>(entries: readonly T[]) =>
    entries.filter(entry => entry.slot === slot)
  const leases = mine(all.epochs)
  const calls = mine(all.calls).toSorted((a, b) => a.end - b.end)
  const epochs = leases
    .filter(({ epoch }, index) => leases.findIndex(other => other.epoch === epoch) === index)
    .toSorted((a, b) => a.epoch - b.epoch)
  return {
    slot,
    birth,
    leases,
    epochs,
    calls,
    served: calls.flatMap(call => {
      const { answer } = call
      if (answer === undefined || answer.startedAt !== birth.startedAt || !isOfSlot(birth, answer)) return []
      const epoch = epochOf(call, answer, epochs)
      return epoch === undefined ? [] : [{ ...call, answer, epoch }]
    }),
    paces: mine(all.paces),
    faults: all.faults.filter(({ slots }) => slots.includes(slot)),
    fenced: all.fenced.filter(({ uid }) => leases.some(lease => lease.uid === uid)),
    resumes: mine(all.resumes),
    moves: mine(all.moves),
  }
}

/** The watch tells of a Lease somewhat later than the agent of its pod; on a busy machine it may be seconds. */
const watchLagMs = 5_000

/** A pod can be called more than once: its answer belongs to the latest epoch that named it by then. */
function epochOf(call: Call, { pod }: Answer, epochs: readonly Epoch[]): number | undefined {
  const own = epochs.filter(each => each.pod === pod)
  return (own.findLast(({ at }) => at - watchLagMs <= call.end) ?? own[0])?.epoch
}

const least = (times: readonly number[]): number =>
  times.reduce((low, at) => Math.min(low, at), Number.POSITIVE_INFINITY)
