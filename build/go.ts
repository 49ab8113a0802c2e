import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import type { DebianOptions } from './debian.ts'
import { run } from './run.ts'

/**
 * Builds the Go program in `directory`, which needs only the standard library, as a static executable and returns its
 * path in the cache.
 * @throws if Go is missing; with Go's messages if the build fails; the signal's reason
 */
export async function goProgram(
  name: string,
  directory: string,
  options: DebianOptions = {},
): Promise<string> {
  const { signal, cacheDir = cacheRoot(), progress, architecture } = options
  const environment = {
    CGO_ENABLED: '0',
    GOFLAGS: '',
    GOWORK: 'off',
    ...(architecture && { GOARCH: architecture }),
    PATH: `${process.env['PATH'] ?? ''}:/usr/local/go/bin:/usr/lib/go/bin`,
  }
  const within = { cwd: directory, env: environment, ...(signal && { signal }) }
  const names = (await readdir(directory)).sort()
  const key = keyOf({
    sources: await Promise.all(names.map(file => readFile(join(directory, file), 'utf8'))),
    // Run in the module's directory: its go.mod may select another Go than the installed one.
    go: await run('go', ['version'], within),
    ...(architecture && { architecture }),
    recipe: 1,
  })
  const target = join(cacheDir, 'native', `${name}-${key}`)
  await cachedDirectory(target, async scratch => {
    progress?.(`compile ${name}`)
    const flags = ['-trimpath', '-buildvcs=false', '-ldflags', '-s -w']
    await run('go', ['build', ...flags, '-o', join(scratch, name), '.'], within)
  })
  return join(target, name)
}
