/** The results of a run: one file for each kind of node, so that a run of one kind leaves the others as they are. */
import { readFile, writeFile } from 'node:fs/promises'
import { kinds, type NodeKind } from './kinds.ts'
import type { TrialName } from './trials.ts'

export type Outcome =
  | { readonly kind: 'ok'; readonly seconds: number }
  | { readonly kind: 'failed'; readonly reason: string }
  /** The trial did not run, because the node is not ready for memory. */
  | { readonly kind: 'refused'; readonly reason: string }

export interface NodeFacts {
  readonly os: string
  readonly kernel: string
  readonly cgroups: string
  readonly systemd: string
  readonly runtime: string
  readonly runc: string
  readonly kubelet: string
  /** Active security modules, as the kernel lists them. */
  readonly securityModules: string
}

export interface KindResult {
  readonly kind: string
  readonly title: string
  /** YYYY-MM-DD */
  readonly date: string
  readonly commit: string
  readonly machine: string
  /** Absent: the node did not join. */
  readonly facts?: NodeFacts
  readonly canary: Outcome
  /** Absent: not run. */
  readonly trials: Readonly<Partial<Record<TrialName, Outcome>>>
  /** Labels of the security module on restored processes, without duplicates. */
  readonly labels: readonly string[]
  /** Broken findings of `kubectl understudy doctor` about the node. */
  readonly doctor: readonly string[]
}

const pathOf = ({ name }: Pick<NodeKind, 'name'>): URL => new URL(`./results/${name}.json`, import.meta.url)

export const writeResult = (result: KindResult): Promise<void> =>
  writeFile(pathOf({ name: result.kind }), `${JSON.stringify(result, undefined, 2)}\n`)

/** Returns the recorded results, in the order of the kinds. */
export async function readResults(): Promise<readonly KindResult[]> {
  const texts = await Promise.all(
    kinds.map(kind =>
      readFile(pathOf(kind), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      }),
    ),
  )
  return texts.flatMap(text => (text === undefined ? [] : [JSON.parse(text) as KindResult]))
}

export const isGreen = ({ canary, trials }: Pick<KindResult, 'canary' | 'trials'>): boolean =>
  [canary, ...Object.values(trials)].every(({ kind }) => kind === 'ok')
