import { redis } from '../checkpoint/subjects.ts'
import type { Moving } from './move.ts'

/** Downtime of the published system by the size of the state, GB: medians of 10 trials, s. */
export const published: ReadonlyMap<number, number> = new Map([
  [0, 2.1],
  [0.1, 2.0],
  [0.2, 2.0],
  [0.5, 4.3],
  [1, 4.0],
  [2.5, 7.8],
  [5, 14],
  [10, 26.7],
  [15, 38.4],
  [20, 51.7],
  [25, 63.5],
  [50, 128.5],
  [100, 255],
])

/** The load of the cases that are not at rest. */
const writesPerSecond = 1_000
/** A load needs keys to write: 0 GB under writes is a redis with some hundred of them. */
const leastBytes = 100e3

/** A move that is measured; `published` is the figure of the published system, s. */
export interface Case extends Moving {
  readonly published: number | undefined
}

/** Agents with `--record-writes=Moves` move smaller memory like agents without it, GB. */
const leastRecorded = 0.1

/** Returns the moves of these sizes, for agents with `--record-writes=Moves`. */
export const recordedOf = (
  sizes: readonly number[],
  options: Parameters<typeof casesOf>[1],
): readonly Case[] =>
  sizes
    .filter(size => size >= leastRecorded)
    .flatMap(size => casesOf(size, options))
    .map(it => ({ ...it, name: `${it.name}, recorded` }))

/** Returns the moves of a redis with this much memory, GB. */
export const casesOf = (size: number, { writes }: { readonly writes: boolean }): readonly Case[] => {
  const name = `${size}gb`.replace('.', 'p')
  // Two processors cannot save a gigabyte each second, and copy it to two nodes.
  const interval = size < 1 ? '1s' : `${Math.ceil(size) * 5}s`
  const figure = published.get(size)
  const rest = { published: figure, subject: redis(name, size * 1e9, { interval }) }
  if (!writes) return [{ ...rest, name: `${size} GB` }]
  const bytes = Math.max(size * 1e9, leastBytes)
  return [
    { ...rest, name: `${size} GB at rest` },
    {
      name: `${size} GB, 1,000 writes/s`,
      published: figure,
      subject: redis(name, bytes, { interval, writesPerSecond }),
    },
  ]
}
