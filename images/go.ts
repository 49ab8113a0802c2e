import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import type { DebianOptions } from './debian.ts'
import { run } from './run.ts'

/**
 * Builds the Go program in `directory`, which needs nothing but the standard library, as a static executable and returns
 * its path in the cache. @throws when there is no Go, with its messages when it fails, and with the signal's reason.
 */
export async function goProgram(
  name: string,
  directory: string,
  options: DebianOptions = {},
): Promise<string> {
  const { signal, cacheDir = cacheRoot(), progress } = options
  const environment = {
    CGO_ENABLED: '0',
    GOFLAGS: '',
    GOWORK: 'off',
    PATH: `${process.env['PATH'] ?? ''}:/usr/local/go/bin:/usr/lib/go/bin`,
  }
  const within = { cwd: directory, env: environment, ...(signal && { signal }) }
  const names = (await readdir(directory)).sort()
  const key = keyOf({
    sources: await Promise.all(names.map(file => readFile(join(directory, file), 'utf8'))),
    // In the module's directory: it may ask for another Go than the one that is installed.
    go: await run('go', ['version'], within),
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
