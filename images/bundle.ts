import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Entry } from './entry.ts'

const project = dirname(dirname(fileURLToPath(import.meta.url)))

// CommonJS inside an ES module: the libraries among our dependencies that are not yet ES modules call require().
const banner = `import { createRequire as understudyRequire } from 'node:module'
const require = understudyRequire(import.meta.url)`

/**
 * The program that starts at `entryPoint` with all its dependencies in one file, `/app/understudy.mjs`, and its
 * source map beside it. Names stay readable, so stack traces are, also without the map. The same sources give the
 * same bytes wherever the checkout lies. Throws with esbuild's messages when they do not build.
 */
export async function bundle(entryPoint: string): Promise<Entry[]> {
  const result = await build({
    entryPoints: [relative(project, entryPoint)],
    absWorkingDir: project,
    outfile: 'app/understudy.mjs',
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    banner: { js: banner },
    logLevel: 'silent',
  })
  return result.outputFiles.map(file => ({
    type: 'file',
    path: `/${relative(project, file.path)}`,
    mode: 0o644,
    content: file.contents,
  }))
}
