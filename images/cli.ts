/** `npm run cli-build`: the kubectl plugin as one file, `out/kubectl-understudy`, that needs nothing but Node. */
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const project = dirname(dirname(fileURLToPath(import.meta.url)))

/** Lowest major version of Node that it runs on. */
const oldest = 24

/** Before anything else is looked at: an older Node would fail with a stack trace about syntax. */
const banner = `#!/usr/bin/env node
if (Number.parseInt(process.versions.node, 10) < ${oldest}) {
  console.error('error: kubectl-understudy needs Node.js ${oldest} or later; this is ' + process.version + ' (' + process.execPath + ')')
  process.exit(1)
}`

/**
 * Builds it into a directory. CommonJS, so that the banner runs before any import; whoever copies the file elsewhere
 * needs no package.json, but here, below one that says \`module\`, there has to be another.
 *
 * @returns path of the program. @throws with esbuild's messages when it does not build.
 */
export async function buildCli(directory: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: ['src/cli/main.ts'],
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
    logLevel: 'silent',
  })
  const [program] = outputFiles
  if (program === undefined) throw new Error('esbuild made nothing')
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "commonjs" }\n')
  const path = join(directory, 'kubectl-understudy')
  // Somebody may be running the one that is there.
  await writeFile(`${path}.new`, program.contents)
  await chmod(`${path}.new`, 0o755)
  await rename(`${path}.new`, path)
  return path
}

if (import.meta.main) console.log(await buildCli(join(project, 'out')))
