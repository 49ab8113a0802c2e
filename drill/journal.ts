import { type Call, type Entry, type History, now } from './history.ts'

/** Entries of one round, with what later rounds need of earlier ones. */
export interface Journal {
  tell(entry: Entry): void
  /** The round so far. */
  history(): History
  /** Begins the next round: it keeps births, epochs and paces, and the latest calls of each slot. */
  turn(): void
}

/** Enough to recognise memory that goes back behind the last round. */
const keptCalls = 200
/** Slots change hands a few times a round. */
const keptEpochs = 100

export function createJournal(): Journal {
  let entries: Entry[] = []
  const ofType = <T extends Entry['type']>(type: T) =>
    entries.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type)
  const lastCalls = (): Call[] => {
    const answered = ofType('call').filter(({ answer }) => answer !== undefined)
    const slots = new Set(answered.map(({ slot }) => slot))
    return [...slots].flatMap(slot => answered.filter(call => call.slot === slot).slice(-keptCalls))
  }
  return {
    tell: entry => {
      entries.push(entry)
    },
    history: () => [...entries],
    turn() {
      const slots = new Set(ofType('birth').map(({ slot }) => slot))
      const paces = [...slots].flatMap(slot =>
        ofType('pace')
          .filter(pace => pace.slot === slot)
          .slice(-1),
      )
      entries = [...ofType('birth'), ...ofType('epoch').slice(-keptEpochs), ...paces, ...lastCalls()]
      entries.push({ type: 'round', at: now() })
    },
  }
}
