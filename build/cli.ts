/** Bundles the kubectl plugin into one script, which needs only Node. `plugin/` makes it an executable without Node. */
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { buildPage, embedding } from './page.ts'

const project = dirname(dirname(fileURLToPath(import.meta.url)))

/** Lowest major version of Node that can run it. */
const oldest = 24

/** This check comes first: an older Node would otherwise fail with a stack trace about syntax. */
const banner = `#!/usr/bin/env node
if (Number.parseInt(process.versions.node, 10) < ${oldest}) {
  console.error('error: kubectl-understudy needs Node.js ${oldest} or later; this is ' + process.version + ' (' + process.execPath + ')')
  process.exit(1)
}`

/**
 * Builds the program into a directory. It is CommonJS, so that the banner runs before any import. A copy of the file
 * elsewhere needs no package.json, but this directory lies below one of type `module` and needs another.
 *
 * @returns path of the program, and paths of the modules in it, from this project's directory
 * @throws with esbuild's messages if the build fails
 */
export async function buildCli(
  directory: string,
): Promise<{ readonly program: string; readonly inputs: readonly string[] }> {
  const page = await buildPage()
  const { outputFiles, metafile } = await build({
    entryPoints: ['src/cli/main.ts'],
    plugins: [embedding(page)],
    absWorkingDir: project,
    outfile: 'kubectl-understudy',
    write: false,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: `node${oldest}`,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    banner: { js: banner },
    metafile: true,
    logLevel: 'silent',
  })
  const [program] = outputFiles
  if (program === undefined) throw new Error('esbuild produced no output')
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "commonjs" }\n')
  const path = join(directory, 'kubectl-understudy')
  // Replace it by a rename: a process may be running the existing file.
  await writeFile(`${path}.new`, program.contents)
  await chmod(`${path}.new`, 0o755)
  await rename(`${path}.new`, path)
  return { program: path, inputs: [...Object.keys(metafile.inputs), ...page.inputs] }
}
