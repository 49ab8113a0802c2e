/** The difference between two pictures of a set. */
import type { SetChange, SetPicture, SlotPicture } from './wire.ts'

/** A picture, with texts that make it comparable. */
export interface Known {
  readonly picture: SetPicture
  readonly facts: string
  readonly slots: ReadonlyMap<number, KnownSlot>
}

interface KnownSlot {
  readonly slot: SlotPicture
  /** Everything but the newest state. */
  readonly text: string
}

export function knownOf(picture: SetPicture): Known {
  const { slots, ...facts } = picture
  return {
    picture,
    facts: JSON.stringify(facts),
    slots: new Map(slots.map(slot => [slot.slot, { slot, text: textOf(slot) }])),
  }
}

const textOf = ({ generation: _, savedAt: _at, ...more }: SlotPicture): string => JSON.stringify(more)

const hasSameState = (a: SlotPicture, b: SlotPicture | undefined): boolean =>
  a.generation === b?.generation && a.savedAt === b?.savedAt

/**
 * Returns the picture with the newest states of before, where nothing else of a slot is new. Nodes report a new state of each slot every second or
 * so: a page that got each of them would draw all the time.
 */
export function withStatesOf({ picture, facts, slots }: Known, before: Known | undefined): Known {
  const kept = [...slots].map(([number, known]) => {
    const old = before?.slots.get(number)
    return [number, old?.text === known.text ? old : known] as const
  })
  return { picture, facts, slots: new Map(kept) }
}

/** Returns what is new since `before`; undefined if nothing is. @param before undefined: everything is new */
export function newIn({ picture, facts, slots }: Known, before: Known | undefined): SetChange | undefined {
  const { slots: _, ...own } = picture
  const hasNewFacts = facts !== before?.facts
  const changed = [...slots].filter(([number, { slot, text }]) => {
    const old = before?.slots.get(number)
    return old?.text !== text || !hasSameState(slot, old.slot)
  })
  const goneSlots = [...(before?.slots.keys() ?? [])].filter(number => !slots.has(number))
  if (!hasNewFacts && changed.length === 0 && goneSlots.length === 0) return undefined
  return {
    key: picture.key,
    ...(hasNewFacts ? { facts: own } : {}),
    ...{ slots: changed.map(([, { slot }]) => slot), goneSlots },
  }
}
