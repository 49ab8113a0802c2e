/** The real Helm, and the chart as `npm run chart` makes it. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chartFiles } from '../../deploy/chart/chart.ts'
import { type Kustomize, kustomizeWith } from '../../deploy/chart/kustomize.ts'
import { writeFiles } from '../../deploy/chart/write.ts'
import { ensureArtifacts } from '../../playground/artifacts/artifacts.ts'
import { type CommandEnd, runToEnd } from '../../playground/exec.ts'

export interface HelmTools extends AsyncDisposable {
  /** Directory of the chart. */
  readonly chart: string
  readonly kustomize: Kustomize
  /** For files of a test. */
  readonly scratch: string
  /** Runs Helm to its end, whatever that is. */
  helm(...args: string[]): Promise<CommandEnd>
  /** Runs Helm, and kills it when the signal fires. */
  helmUntil(signal: AbortSignal, ...args: string[]): Promise<CommandEnd>
  /** Packs the chart. @returns the path of its archive */
  packed(): Promise<string>
  /** Writes values to a file, and returns the arguments that name it. */
  values(values: object): Promise<readonly string[]>
}

/** The first call on a machine builds Helm. */
export async function openHelm(): Promise<HelmTools> {
  const { helm, kube } = await ensureArtifacts(['helm', 'kube'])
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-helm-'))
  const kustomize = kustomizeWith(join(kube, 'kubectl'))
  const chart = await writeFiles(join(scratch, 'understudy'), await chartFiles(kustomize))
  // Helm would read and write the home of the user.
  const env = Object.fromEntries(
    ['CACHE', 'CONFIG', 'DATA'].map(name => [`HELM_${name}_HOME`, join(scratch, name)]),
  )
  let count = 0
  const run = (args: readonly string[], signal?: AbortSignal) =>
    runToEnd([join(helm, 'helm'), ...args], { env, ...(signal && { signal }) })
  return {
    chart,
    kustomize,
    scratch,
    helm: (...args) => run(args),
    helmUntil: (signal, ...args) => run(args, signal),
    async packed() {
      const into = join(scratch, 'packed')
      await run(['package', chart, '--destination', into])
      const [archive = ''] = await readdir(into)
      return join(into, archive)
    },
    async values(values) {
      count += 1
      const file = join(scratch, `values-${count}.json`)
      await writeFile(file, JSON.stringify(values))
      return ['--values', file]
    },
    [Symbol.asyncDispose]: () => rm(scratch, { recursive: true, force: true }),
  }
}

/** Longest time to build Helm on a machine that has never done so. */
export const buildMs = 1_800_000
