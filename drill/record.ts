/**
 * The record of a drill: its plan, and a line for each round that is over. So a drill that was interrupted can continue,
 * and its summary covers all of its rounds.
 */
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { exists } from '../build/cache.ts'
import type { Figure, MoveRow } from './check/check.ts'
import type { Violation } from './check/violation.ts'

/** The options of a run that decide its rounds. */
export interface Plan {
  readonly type: 'plan'
  readonly seed: number
  readonly rounds: number
  /** First round; those before it are left out. */
  readonly from: number
  /** `all`, or nemeses as on the command line. */
  readonly what: readonly string[]
  /** The slots have grants. */
  readonly grant: boolean
}

/** A round that is over. */
export interface Row {
  readonly type: 'round'
  readonly round: number
  /** The commit of the code, with a plus sign if the work tree has other changes. */
  readonly commit: string
  /** Names of the nemeses. */
  readonly nemeses: readonly string[]
  readonly outages: readonly number[]
  readonly figures: readonly Figure[]
  readonly violations: readonly Violation[]
  /** Absent in records of earlier versions. */
  readonly moves?: readonly MoveRow[]
}

export interface RunRecord {
  readonly plan: Plan
  readonly rows: readonly Row[]
}

const lineOf = (entry: Plan | Row): string => `${JSON.stringify(entry)}\n`

export const addRow = (path: string, row: Row): Promise<void> => appendFile(path, lineOf(row))

/**
 * Writes a record from its beginning, also when a drill continues it: the end of the drill before may have cut off the last
 * line.
 */
export const writeRecord = (path: string, { plan, rows }: RunRecord): Promise<void> =>
  writeFile(path, [plan, ...rows].map(lineOf).join(''))

/** Hours of rounds may be in a record. @throws Error if the file exists */
export async function mustBeNew(path: string): Promise<void> {
  if (await exists(path))
    throw new Error(`${path} exists: continue it with --continue ${path}, or name another file`)
}

/** @throws Error if the file is no record */
export async function readRecord(path: string): Promise<RunRecord> {
  return parseRecord(await readFile(path, 'utf8'), path)
}

/** @throws Error with the path, if the text is no record */
export function parseRecord(text: string, path: string): RunRecord {
  // A last line without its end was cut off: the run repeats that round.
  const [plan, ...rows] = text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Plan | Row)
  if (plan?.type !== 'plan') throw new Error(`${path}: no record of a drill`)
  return { plan, rows: rows.filter(row => row.type === 'round') }
}

/** Returns the rounds that are still to be played. */
export function roundsOf({ plan: { from, rounds }, rows }: RunRecord): number[] {
  const first = Math.max(from, ...rows.map(({ round }) => round + 1))
  return Array.from({ length: Math.max(0, rounds - first + 1) }, (_, index) => first + index)
}

/** Each round has a source of its own: it is the same whatever was drawn in earlier rounds, or left out. */
export const seedOf = ({ seed }: Plan, round: number): number => seed * 100_003 + round
