/** The machine of a user: a fresh checkout, a shell, and for those who have one a cluster that was there before. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureImages } from '../images/build.ts'
import { ensureArtifacts } from '../playground/artifacts/artifacts.ts'
import { type Cluster, down, up } from '../playground/cluster.ts'
import { run } from '../playground/exec.ts'
import type { Progress } from '../src/terminal/progress.ts'
import { openShell, type Shell } from './shell.ts'
import type { User } from './users.ts'

/** Images of the samples that a cluster would pull. This one has no registry, so a local image has the same name and program. */
const publicImages = [['zoo', 'docker.io/library/node:24-slim']] as const

/** Where a bench brings up its own playground. */
const benchCluster = 'bench'

export interface Stage extends AsyncDisposable {
  readonly shell: Shell
  /** The commit that the user has checked out. */
  readonly commit: string
}

export interface StageOptions {
  readonly user: User
  /** Name of the playground. */
  readonly name: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

const root = fileURLToPath(new URL('..', import.meta.url))

export async function openStage({ user, name, progress, signal }: StageOptions): Promise<Stage> {
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-first-day-'))
  const close = async () => {
    for (const cluster of user.cluster === 'existing' ? [name] : [name, benchCluster])
      await progress.step(`take down ${cluster}`, () => down(cluster, { progress }))
    await rm(scratch, { recursive: true, force: true })
  }
  try {
    const checkout = join(scratch, 'understudy')
    const bin = join(scratch, 'bin')
    await mkdir(bin)
    await run(['git', 'clone', '--quiet', root, checkout], { signal })
    const commit = (await run(['git', 'rev-parse', '--short', 'HEAD'], { cwd: checkout })).trim()
    const cluster = user.cluster === 'existing' ? await existing(name, progress, signal) : undefined
    const programs = Object.values(await ensureArtifacts(user.has, { progress, signal }))
    const path = [bin, ...(cluster ? [join(cluster.stateDir, 'bin')] : []), ...programs]
    const shell = openShell({
      cwd: checkout,
      env: environment(scratch, [...path, ...systemPath()], {
        FIRST_DAY_BIN: bin,
        FIRST_DAY_CLUSTER: name,
        UNDERSTUDY_PLAYGROUND: name,
        ...(cluster && { KUBECONFIG: cluster.kubeconfigPath }),
      }),
      scratch,
      signal,
    })
    return {
      shell,
      commit,
      async [Symbol.asyncDispose]() {
        await shell[Symbol.asyncDispose]()
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** A bare cluster, which finds the public images of the samples. */
async function existing(name: string, progress: Progress, signal: AbortSignal): Promise<Cluster> {
  const images = await progress.step('public images', step =>
    ensureImages(
      publicImages.map(([image]) => image),
      { signal, progress: step.detail },
    ),
  )
  const archives = Object.values(images).map(({ path }) => path)
  const cluster = await up({ name, images: archives, progress, signal })
  for (const node of cluster.nodes)
    for (const [image, reference] of publicImages)
      await cluster.inNode(node, [
        ...['ctr', '--namespace', 'k8s.io', 'images', 'tag', '--force'],
        ...[images[image].ref, reference],
      ])
  return cluster
}

/** Without the programs of this checkout: the user has only those of the system. */
const systemPath = (): readonly string[] =>
  (process.env['PATH'] ?? '').split(delimiter).filter(directory => !directory.includes('node_modules'))

/** Without what npm tells the programs that it starts. */
function environment(
  scratch: string,
  path: readonly string[],
  more: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([key]) => !/^npm_|^NODE_|^INIT_CWD$|^KUBECONFIG$/.test(key))
  const helm = ['CACHE', 'CONFIG', 'DATA'].map(kind => [`HELM_${kind}_HOME`, join(scratch, 'helm', kind)])
  return {
    ...Object.fromEntries(own),
    ...Object.fromEntries(helm),
    PATH: path.join(delimiter),
    KUBECACHEDIR: join(scratch, 'kube'),
    NO_COLOR: '1',
    ...more,
  }
}
