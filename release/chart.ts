import { mkdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { run } from '../build/run.ts'
import { takeTree } from '../build/tree.ts'
import { writeLayer } from '../images/layer.ts'
import { project } from './contents.ts'
import { chartOf } from './files.ts'

export interface ChartOptions {
  /** Digests of the images by name, which the chart binds. */
  readonly digests: Readonly<Record<string, string>>
  readonly registry?: string
  readonly kubectl: string
  readonly signal?: AbortSignal
}

/**
 * Adds the Helm chart to a release, if this repository has the command that writes one: an archive as `helm package`
 * makes it, but the same each time. The command prints the directory of the chart.
 */
export async function addChart(
  directory: string,
  version: string,
  { digests, registry, kubectl, signal }: ChartOptions,
): Promise<void> {
  const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>
  }
  if (scripts['chart'] === undefined) return
  const work = join(directory, '.chart')
  await mkdir(work)
  try {
    const words = ['run', '--silent', 'chart', '--', '--out', work, '--kubectl', kubectl]
    const bound = Object.entries(digests).flatMap(([name, digest]) => ['--digest', `${name}=${digest}`])
    const published = registry === undefined ? [] : ['--registry', registry]
    const chart = (
      await run('npm', [...words, ...bound, ...published], { cwd: project, ...(signal && { signal }) })
    ).trim()
    const files = await takeTree({ root: dirname(chart), packages: [] }, `/${basename(chart)}`)
    // The umask of this machine must not reach the archive: the same commit gives the same bytes.
    const plain = files.map(file => (file.type === 'file' ? { ...file, mode: 0o644 } : file))
    await writeLayer(join(directory, chartOf(version)), plain, signal)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
