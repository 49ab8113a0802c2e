import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Entry } from './entry.ts'

const project = dirname(dirname(fileURLToPath(import.meta.url)))

// CommonJS inside an ES module: some of our dependencies are not yet ES modules and call require().
const banner = `import { createRequire as understudyRequire } from 'node:module'
const require = understudyRequire(import.meta.url)`

/**
 * Bundles the program that starts at `entryPoint` with all its dependencies into one file, `/app/understudy.mjs`, with
 * its source map beside it. Names stay readable, so stack traces are readable even without the map. The same sources
 * give the same bytes, whatever the path of the checkout.
 * @throws with esbuild's messages if the build fails
 */
export async function bundle(entryPoint: string): Promise<Entry[]> {
  const { outputFiles } = await bundled(entryPoint)
  return outputFiles.map(file => ({
    type: 'file',
    path: `/${relative(project, file.path)}`,
    mode: 0o644,
    content: file.contents,
  }))
}

/** Returns the modules that a bundle contains, as paths from this project's directory. */
export async function bundledModules(entryPoint: string): Promise<readonly string[]> {
  const { metafile } = await bundled(entryPoint)
  return Object.keys(metafile.inputs)
}

function bundled(entryPoint: string) {
  return build({
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
    metafile: true,
    logLevel: 'silent',
  })
}
