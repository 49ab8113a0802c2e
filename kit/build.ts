/** `npm run pack-kit`: builds `src/kube` as the npm package @understudy/kube, `out/kit/understudy-kube-VERSION.tgz`. */
import { execFile } from 'node:child_process'
import { cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { importedBy } from '../lint/borders/imports.ts'
import project from '../package.json' with { type: 'json' }
import { apiPage } from './api.ts'

const run = promisify(execFile)
const root = new URL('..', import.meta.url).pathname

export const packageName = '@understudy/kube'

/**
 * Builds the package into a directory, which is emptied first.
 *
 * @returns path of the archive
 * @throws with the compiler's messages if it does not compile, or if it needs a package that this project does not pin.
 */
export async function packKit(directory: string): Promise<string> {
  const content = join(directory, 'package')
  const dist = join(content, 'dist')
  await rm(directory, { recursive: true, force: true })
  await mkdir(content, { recursive: true })
  await run('tsc', ['-p', join(root, 'kit'), '--outDir', dist])
  const readme = await readFile(join(root, 'src/kube/README.md'), 'utf8')
  await writeFile(join(content, 'README.md'), withoutOutsideLinks(readme))
  await cp(join(root, 'LICENSE'), join(content, 'LICENSE'))
  await writeFile(join(content, 'API.md'), await apiPage(dist))
  const manifest = manifestOf(await packagesIn(dist))
  await writeFile(join(content, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const { stdout } = await run('npm', ['pack', '--silent', content], { cwd: directory })
  return join(directory, stdout.trim())
}

/** Name, exports and dependencies of the package; its version is this project's. */
function manifestOf(packages: readonly string[]) {
  const pinned: Readonly<Record<string, string>> = project.dependencies
  const dependencies = packages.map(name => {
    const version = pinned[name]
    if (version === undefined)
      throw new Error(`package.json has no dependency ${name}, which src/kube imports`)
    return [name, version]
  })
  const entry = (path: string) => ({ types: `${path}.d.ts`, default: `${path}.js` })
  return {
    name: packageName,
    version: project.version,
    description: 'The parts of a Kubernetes operator: client, caches, queues, leader election, manager',
    license: project.license,
    type: 'module',
    engines: project.engines,
    exports: {
      '.': entry('./dist/index'),
      './testing': entry('./dist/testing/index'),
      './package.json': './package.json',
    },
    sideEffects: false,
    files: ['dist', '*.md'],
    dependencies: Object.fromEntries(dependencies),
  }
}

/** Returns the packages that the compiled files import, for their code or for their types, in alphabetical order. */
async function packagesIn(dist: string): Promise<readonly string[]> {
  const packages = new Set<string>()
  for await (const file of glob('**/*.{js,d.ts}', { cwd: dist }))
    for (const name of importedBy(file, await readFile(join(dist, file), 'utf8'))) {
      if (name.startsWith('.') || isBuiltin(name)) continue
      const [first = '', second] = name.split('/')
      packages.add(first.startsWith('@') ? `${first}/${second}` : first)
    }
  return [...packages].sort()
}

/** The text of a link stays where its target, elsewhere in this project, is not in the package. */
const withoutOutsideLinks = (markdown: string) => markdown.replace(/\[([^\]]+)\]\(\.\.\/[^)]*\)/g, '$1')

if (import.meta.main) {
  const archive = await packKit(join(root, 'out/kit'))
  console.log(archive)
}
