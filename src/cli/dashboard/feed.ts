import type { Clock } from '../../kube/clock.ts'
import type { World } from '../world.ts'
import { type Known, knownOf, newIn, withStatesOf } from './changes.ts'
import { picturesOf } from './picture.ts'
import type { Head, Message, SetChange } from './wire.ts'

export interface Feed {
  /** Calls `listener` with everything at once, then with each change. @returns the function that ends this */
  subscribe(listener: (message: string) => void): () => void
  /** Notes that something has changed, and tells it soon. */
  changed(): void
  /** Tells changes, and that the program is alive, until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

export interface FeedOptions {
  readonly world: () => World
  readonly head: () => Head
  readonly clock: Clock
}

/** Minimum time between two messages, ms: a start of many pods causes many changes. */
const messageEveryMs = 100
/** Time between two messages that have newer states of slots and nothing else, ms. */
const statesEveryMs = 1_000
/** Pictures take at most this share of a processor. */
const share = 1 / 4
/** A page that hears nothing for much longer takes the program for dead. */
export const aliveEveryMs = 3_000

export function createFeed({ world, head, clock }: FeedOptions): Feed {
  const listeners = new Set<(message: string) => void>()
  /** The pictures that all listeners have, by key. */
  let shown = new Map<string, Known>()
  let lastHead = ''
  let statesToldAt = Number.NEGATIVE_INFINITY
  let note: (() => void) | undefined
  let isNoted = false

  const draw = (): Message => {
    const areStatesDue = clock.monotonic() - statesToldAt >= statesEveryMs
    if (areStatesDue) statesToldAt = clock.monotonic()
    const next = new Map(
      picturesOf(world()).map(picture => {
        const known = knownOf(picture)
        return [picture.key, areStatesDue ? known : withStatesOf(known, shown.get(picture.key))]
      }),
    )
    const sets = [...next.values()].flatMap((known): SetChange[] => {
      const change = newIn(known, shown.get(known.picture.key))
      return change === undefined ? [] : [change]
    })
    const gone = [...shown.keys()].filter(key => !next.has(key))
    shown = next
    return { head: head(), whole: false, sets, gone }
  }
  const tell = (message: Message) => {
    const text = JSON.stringify(message)
    for (const listener of [...listeners]) listener(text)
  }
  /** @returns after how long the next message may be sent, ms */
  const tellChanges = (): number => {
    // No page looks, and the first one gets everything.
    if (listeners.size === 0) return messageEveryMs
    const begun = clock.monotonic()
    const message = draw()
    const state = JSON.stringify({ ...message.head, now: 0 })
    if (message.sets.length > 0 || message.gone.length > 0 || state !== lastHead) tell(message)
    lastHead = state
    return Math.max(messageEveryMs, (clock.monotonic() - begun) / share)
  }
  const wait = async (signal: AbortSignal): Promise<'changed' | 'quiet'> => {
    if (isNoted) return 'changed'
    const noted = Promise.withResolvers<'changed'>()
    note = () => noted.resolve('changed')
    const over = new AbortController()
    const quiet = clock
      .sleep(aliveEveryMs, AbortSignal.any([signal, over.signal]))
      .then(() => 'quiet' as const)
    try {
      return await Promise.race([noted.promise, quiet])
    } finally {
      note = undefined
      over.abort()
      quiet.catch(() => undefined)
    }
  }
  return {
    subscribe(listener) {
      // The others get what has changed for them first, so that all have the same pictures.
      tellChanges()
      if (listeners.size === 0) draw()
      const sets = [...shown.values()].flatMap(known => newIn(known, undefined) ?? [])
      listeners.add(listener)
      listener(JSON.stringify({ head: head(), whole: true, sets, gone: [] } satisfies Message))
      return () => {
        listeners.delete(listener)
      }
    },
    changed() {
      isNoted = true
      note?.()
    },
    async run(signal) {
      while (!signal.aborted) {
        const why = await wait(signal)
        isNoted = false
        const pause = tellChanges()
        if (why === 'quiet') tell({ head: head(), whole: false, sets: [], gone: [] })
        await clock.sleep(pause, signal)
      }
    },
  }
}
