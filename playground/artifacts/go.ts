import { readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError, run } from '../exec.ts'
import { PlaygroundError } from '../failure.ts'
import type { BuildContext, Recipe } from './recipe.ts'

/** A changed flag invalidates Go's whole build cache: four minutes for Kubernetes. */
const BUILD_FLAGS = ['-trimpath', '-buildvcs=false', '-mod=readonly']

export interface GoBinaries {
  /** Directory below go/ with the go.mod and go.sum that pin every version. */
  readonly module: string
  /** Packages to build: below the module, or named by a `tool` line of its go.mod. */
  readonly packages: readonly string[]
  /** Values set at link time: `package.variable` to value. */
  readonly variables?: Readonly<Record<string, string>>
  /** Other names for a binary that decides by the name it is called by. */
  readonly links?: Readonly<Record<string, string>>
  /** Adds files other than binaries to the finished directory. */
  readonly extra?: (directory: string, context: BuildContext & { moduleDirectory: string }) => Promise<void>
}

/**
 * A recipe for a directory of static binaries, built from Go modules whose versions and hashes are in this repository.
 */
export function goBinaries(title: string, spec: GoBinaries): Recipe {
  const moduleDirectory = fileURLToPath(new URL(`./go/${spec.module}`, import.meta.url))
  return {
    title: `build ${title}`,
    inputs: async () => ({
      flags: BUILD_FLAGS,
      spec: { ...spec, extra: spec.extra?.toString() },
      sources: await sourceFiles(moduleDirectory),
    }),
    async build(directory, context) {
      const values = Object.entries(spec.variables ?? {}).map(([name, value]) => `-X ${name}=${value}`)
      try {
        await run(
          [
            'go',
            'build',
            ...BUILD_FLAGS,
            '-ldflags',
            ['-s -w', ...values].join(' '),
            '-o',
            `${directory}/`,
            ...spec.packages,
          ],
          {
            cwd: moduleDirectory,
            env: goEnvironment(),
            signal: context.signal,
            logFile: context.logFile,
            onErrorLine: line => context.detail(line.replace(/^go: /, '').slice(0, 60)),
          },
        )
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        throw new PlaygroundError(`cannot build ${title}`, {
          cause: error,
          logPath: context.logFile,
          advice:
            'check that the Go module proxy is reachable (see "go env GOPROXY") and that the disk has space; ' +
            'then run the same command again, which reuses all finished downloads and builds',
        })
      }
      for (const [name, target] of Object.entries(spec.links ?? {}))
        await symlink(target, join(directory, name))
      await spec.extra?.(directory, { ...context, moduleDirectory })
    },
  }
}

/** The caller's flags and workspace must not change the build; its proxy and cache settings apply. */
export function goEnvironment(): Record<string, string> {
  const path = process.env['PATH'] ?? ''
  return { CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off', PATH: `${path}:/usr/local/go/bin:/usr/lib/go/bin` }
}

async function sourceFiles(directory: string): Promise<Record<string, string>> {
  const names = (await readdir(directory, { recursive: true }))
    .filter(name => name.endsWith('.go') || name === 'go.mod' || name === 'go.sum')
    .sort()
  const files: Record<string, string> = {}
  for (const name of names) files[name] = await readFile(join(directory, name), 'utf8')
  return files
}
