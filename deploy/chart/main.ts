/** `npm run chart` writes the Helm chart. */
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { ensureArtifacts } from '../../playground/artifacts/artifacts.ts'
import { createProgress } from '../../src/terminal/progress.ts'
import { chartFiles, chartName } from './chart.ts'
import { usableKubectl } from './kubectl.ts'
import { kustomizeWith } from './kustomize.ts'
import { writeFiles } from './write.ts'

interface Flags {
  readonly out: string
  readonly kubectl?: string
  readonly registry?: string
  readonly digest: Readonly<Record<string, string>>
}

/** Adds `NAME=sha256:...` to the digests. */
function withDigest(
  text: string,
  digests: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const [, name, digest] = /^([a-z]+)=(sha256:[0-9a-f]{64})$/.exec(text) ?? []
  if (name === undefined || digest === undefined)
    throw new InvalidArgumentError('must be the name of an image and its digest, such as operator=sha256:...')
  return { ...digests, [name]: digest }
}

async function main({ out, kubectl, registry, digest: digests }: Flags, signal: AbortSignal): Promise<void> {
  const built = async () => {
    const progress = createProgress(process.stderr)
    return join((await ensureArtifacts(['kube'], { progress, signal })).kube, 'kubectl')
  }
  const files = await chartFiles(
    kustomizeWith(kubectl ?? (await usableKubectl('kubectl', signal)) ?? (await built()), signal),
    { registry, digests },
  )
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
      'path of a kubectl of version 1.30 or later; default: the one in your PATH, else the playground builds one from source',
    )
    .option('--registry <registry>', 'where the images of a release are published')
    .option(
      '--digest <image=digest>',
      'an image of a release, which the chart names by digest; repeat it for each',
      withDigest,
      {},
    )
    .action((flags: Flags) => main(flags, stop.signal))
  try {
    await program.parseAsync()
  } catch (error) {
    console.error(`chart: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}
