import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { toolchainFor } from './architecture.ts'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { type DebianOptions, lockedPackages } from './debian.ts'
import { run } from './run.ts'

/**
 * Compiles one C file to a static, stripped executable against musl and returns its path in the cache. musl comes from
 * Debian as files only (nothing is installed). The compiler is the machine's `gcc`, or the cross compiler for another
 * architecture; if it is missing and we are root, apt installs it.
 */
export async function compileStatic(source: string, options: DebianOptions = {}): Promise<string> {
  const { signal } = options
  const compiler = await findCompiler(options)
  const musl = await lockedPackages('musl', options)
  const key = keyOf({
    code: await readFile(source, 'utf8'),
    compiler: await run(compiler, ['-v', '--version'], { ...(signal && { signal }) }),
    musl: musl.packages,
    recipe: 1,
  })
  const name = basename(source, '.c')
  const target = join(options.cacheDir ?? cacheRoot(), 'native', `${name}-${key}`)
  await cachedDirectory(target, async scratch => {
    options.progress?.(`compile ${basename(source)}`)
    const triple = (await run(compiler, ['-dumpmachine'])).trim().replace('-gnu', '-musl')
    const include = (await run(compiler, ['-print-file-name=include'])).trim()
    const lib = join(musl.root, 'usr/lib', triple)
    await run(
      compiler,
      [
        ...['-std=gnu17', '-Os', '-Wall', '-Wextra', '-Werror', '-static', '-s', '-fno-pie', '-no-pie'],
        ...['-ffunction-sections', '-fdata-sections', '-fno-asynchronous-unwind-tables'],
        ...['-nostdinc', '-isystem', join(musl.root, 'usr/include', triple), '-isystem', include],
        ...['-nostdlib', '-nostartfiles', `-L${lib}`, '-Wl,--gc-sections', '-Wl,--build-id=none'],
        // The path of the checkout must not reach the binary: same sources, same bytes.
        `-ffile-prefix-map=${dirname(source)}=.`,
        ...['-o', join(scratch, name)],
        ...[join(lib, 'crt1.o'), join(lib, 'crti.o'), source],
        ...['-Wl,--start-group', '-lc', '-lgcc', '-Wl,--end-group', join(lib, 'crtn.o')],
      ],
      { ...(signal && { signal }) },
    )
  })
  return join(target, name)
}

/** Returns the name of the compiler for an architecture. @throws if it is missing and cannot be installed */
export async function findCompiler({ architecture, signal, progress }: DebianOptions): Promise<string> {
  const { compiler, debianPackage } = toolchainFor(architecture)
  const works = (): Promise<boolean> =>
    run(compiler, ['--version']).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return false
        throw error
      },
    )
  if (await works()) return compiler
  if (process.getuid?.() !== 0)
    throw new Error(`${compiler} is missing: install it with \`apt-get install ${debianPackage}\``)
  progress?.(`apt-get install ${debianPackage}`)
  const options = signal === undefined ? {} : { signal }
  await run('apt-get', ['--quiet', 'update'], options)
  await run('apt-get', ['--quiet', '--yes', '--no-install-recommends', 'install', debianPackage], options)
  return compiler
}
