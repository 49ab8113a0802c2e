/** Injected randomness: names, jitter and random policies repeat exactly with the same seed. */
import { randomBytes, randomInt } from 'node:crypto'

export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** `count` bytes. */
  bytes(count: number): Uint8Array
}

/** From the operating system: fit for keys. */
export const systemRandom: Random = Object.freeze({
  next: () => randomInt(2 ** 47) / 2 ** 47,
  bytes: (count: number) => new Uint8Array(randomBytes(count)),
})

/** The same sequence for the same seed (mulberry32). For tests and seeded policies only, never for keys. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { next, bytes: count => Uint8Array.from({ length: count }, () => Math.floor(next() * 256)) }
}
