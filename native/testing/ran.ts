import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../../build/cache.ts'
import { compileStatic, findCompiler } from '../../build/compile.ts'
import { run } from '../../build/run.ts'
import { textsOf } from '../../build/static-program.ts'

/** Builds a program and a library that leave a file `/ran` when they run or are loaded; see ran.c. */
export async function buildRan(): Promise<{ readonly program: string; readonly library: string }> {
  const source = join(import.meta.dirname, 'ran.c')
  const compiler = await findCompiler({})
  const flags = [
    '-std=gnu17',
    '-O1',
    '-fPIC',
    '-shared',
    '-nostdlib',
    '-ffreestanding',
    '-fno-stack-protector',
  ]
  const key = keyOf({
    sources: await textsOf(import.meta.dirname, /^ran\.c$/),
    compiler: await run(compiler, ['--version']),
    flags,
  })
  const directory = await cachedDirectory(join(cacheRoot(), 'native', `ran-${key}`), async scratch => {
    await run(compiler, [...flags, '-o', join(scratch, 'ran.so'), source])
  })
  return { program: await compileStatic(source), library: join(directory, 'ran.so') }
}
