/** `npm run chart` writes the Helm chart. */
import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { ensureArtifacts } from '../../playground/artifacts/artifacts.ts'
import { createProgress } from '../../src/terminal/progress.ts'
import { chartFiles, chartName } from './chart.ts'
import { kustomizeWith } from './kustomize.ts'
import { writeFiles } from './write.ts'

interface Flags {
  readonly out: string
  readonly kubectl?: string
}

async function main({ out, kubectl }: Flags, signal: AbortSignal): Promise<void> {
  const built = async () => {
    const progress = createProgress(process.stderr)
    return join((await ensureArtifacts(['kube'], { progress, signal })).kube, 'kubectl')
  }
  const files = await chartFiles(kustomizeWith(kubectl ?? (await built()), signal))
  console.log(await writeFiles(join(resolve(out), chartName), files))
}

if (import.meta.main) {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)))
  const program = new Command('npm run chart --')
    .description('Makes the Helm chart from the kustomizations in deploy/, and prints its path.')
    .option('--out <directory>', 'where the directory of the chart is written', 'out/chart')
    .option(
      '--kubectl <program>',
      'path of a kubectl of version 1.30 or later; default: the playground builds one from source',
    )
    .action((flags: Flags) => main(flags, stop.signal))
  try {
    await program.parseAsync()
  } catch (error) {
    console.error(`chart: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}
