/** The last result of each user, from which docs/first-day.md is made: first-day/results/NAME.json. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { PlannedCommand } from './plan.ts'
import type { PlayedCommand, PlayedUser } from './play.ts'
import { users } from './users.ts'

export interface Origin {
  /** YYYY-MM-DD. */
  readonly date: string
  readonly machine: string
  readonly commit: string
  /** Share of the time in which some process waited for a processor. */
  readonly waited?: number
}

/** Without the outputs. */
export interface Recorded extends Omit<PlayedUser, 'commands'> {
  readonly origin: Origin
  readonly commands: readonly (Pick<PlannedCommand, 'step' | 'at' | 'written'> &
    Pick<PlayedCommand, 'seconds' | 'result'>)[]
}

const fileOf = (name: string): URL => new URL(`results/${name}.json`, import.meta.url)

export const recorded = (user: PlayedUser, origin: Origin): Recorded => ({
  ...user,
  origin,
  commands: user.commands.map(({ step, at, written, seconds, result }) => ({
    ...{ step, at, written, result },
    seconds: Number(seconds.toFixed(1)),
  })),
})

export async function writeResult(result: Recorded): Promise<void> {
  await mkdir(new URL('.', fileOf(result.name)), { recursive: true })
  await writeFile(fileOf(result.name), `${JSON.stringify(result, undefined, 2)}\n`)
}

/** @returns the results in the order of the users */
export async function readResults(): Promise<readonly Recorded[]> {
  const names = users.map(({ name }) => name).filter(name => existsSync(fileOf(name)))
  return Promise.all(names.map(async name => JSON.parse(await readFile(fileOf(name), 'utf8')) as Recorded))
}
