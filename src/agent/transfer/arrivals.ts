import { isNewer } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { linkedTo, unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Version } from './protocol.ts'

/**
 * Generations that arrive. Tasks follow each other while a large one arrives: the holder of a slot whose pod is called stops to
 * replicate it, and needs the same generation at once. It must not begin to arrive once more.
 */
export interface Arrivals {
  /**
   * Waits for the generation that arrives now.
   * @returns undefined: nothing arrives, or only what is older than `atLeast`.
   * @throws its failure, the signal's reason.
   */
  join(from: From, atLeast: Partial<Version> | undefined, signal: AbortSignal): Promise<Stored> | undefined
  /**
   * Lets one arrive. When its last waiter has left, it has some seconds for the next one. It ends sooner if another one of the slot begins to
   * arrive that is not older: it has taken the room.
   * @param receive calls `onVersion` when it has an answer, and awaits it before it takes room. Until then it ends with its waiter.
   * @throws its failure, the signal's reason.
   */
  begin(
    from: From,
    signal: AbortSignal,
    receive: (
      signal: AbortSignal,
      onVersion: (version: Version) => Promise<void>,
    ) => Promise<Stored | undefined>,
  ): Promise<Stored | undefined>
  /** Ends all. */
  close(): void
}

export interface From {
  /** Name of the slot. */
  readonly slot: string
  /** Fingerprint of the other agent. */
  readonly peer: string
}

interface Arrival extends From {
  readonly version: Version
  readonly whole: Promise<Stored | undefined>
  readonly stop: AbortController
  waiters: number
  /** How many waiters there have been. */
  seen: number
}

/** The agent of a pod that is called waits for reports for a second, and then for the memory. */
const lingerMs = 3_000

export function createArrivals(clock: Pick<Clock, 'sleep'>): Arrivals {
  const all = new Set<Arrival>()

  function end(arrival: Arrival, why: string) {
    all.delete(arrival)
    arrival.stop.abort(new Error(why))
  }

  async function wait(arrival: Arrival, signal: AbortSignal): Promise<Stored | undefined> {
    arrival.waiters += 1
    arrival.seen += 1
    try {
      return await unlessAborted(arrival.whole, signal)
    } finally {
      arrival.waiters -= 1
      if (arrival.waiters === 0) linger(arrival)
    }
  }

  /** Ends it after some seconds, unless another waiter has come. */
  function linger(arrival: Arrival) {
    const { seen } = arrival
    clock.sleep(lingerMs, arrival.stop.signal).then(
      () => arrival.seen === seen && end(arrival, 'no task waits for this generation any more'),
      () => undefined,
    )
  }

  /** Ends those of the slot that no task waits for, unless they are newer. Resolves when they have given their room back. */
  async function makeRoom(slot: string, version: Version) {
    const superfluous = [...all].filter(
      it => it.slot === slot && it.waiters === 0 && !isNewer(it.version, version),
    )
    for (const arrival of superfluous) end(arrival, 'another generation of the slot arrives')
    await Promise.allSettled(superfluous.map(({ whole }) => whole))
  }

  return {
    join({ slot, peer }, atLeast, signal) {
      const arrival = [...all].find(
        it => it.slot === slot && it.peer === peer && !isOlder(it.version, atLeast),
      )
      return arrival && wait(arrival, signal).then(there)
    },
    async begin(from, signal, receive) {
      const stop = linkedTo(signal)
      const unlink = () => stop[Symbol.dispose]()
      const answered = Promise.withResolvers<Version>()
      const whole = receive(stop.signal, async version => {
        answered.resolve(version)
        await makeRoom(from.slot, version)
      })
      let arrival: Arrival | undefined
      const over = () => {
        unlink()
        if (arrival !== undefined) end(arrival, 'over')
      }
      whole.then(over, over)
      const version = await Promise.race([answered.promise, whole.then(() => undefined)])
      if (version === undefined || signal.aborted) return whole
      unlink()
      arrival = { ...from, version, whole, stop, waiters: 0, seen: 0 }
      all.add(arrival)
      return wait(arrival, signal)
    },
    close() {
      for (const arrival of all) end(arrival, 'the node stops')
    },
  }
}

/** The epoch of a generation is unknown if an agent of an earlier version has told of it. */
const isOlder = (
  version: Version,
  { epoch = version.epoch, generation = 0 }: Partial<Version> = {},
): boolean => isNewer({ epoch, generation }, version)

function there(stored: Stored | undefined): Stored {
  // A generation that has an answer is stored, or it fails.
  if (stored === undefined) throw new Error('nothing has arrived')
  return stored
}
