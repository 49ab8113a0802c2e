import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Returns the directories of the npm packages that a bundle contains, sorted. `inputs` are paths of its modules. */
export function packagesIn(inputs: readonly string[]): readonly string[] {
  const found = inputs.flatMap(input => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? [])
  return [...new Set(found)].sort()
}

/**
 * Returns the licences of everything that an executable contains: Node, and the npm packages of the program.
 *
 * @param project directory of this repository @param node directory of Node's package
 */
export async function notices(project: string, packages: readonly string[], node: string): Promise<string> {
  const texts = await Promise.all(
    packages.map(async path => {
      const manifest = JSON.parse(await readFile(join(project, path, 'package.json'), 'utf8')) as {
        readonly name: string
        readonly version: string
        readonly license?: string
      }
      const files = (await readdir(join(project, path)))
        .filter(name => /^(licen[cs]e|notice)/i.test(name))
        .sort()
      const bodies = await Promise.all(files.map(name => readFile(join(project, path, name), 'utf8')))
      return [`${manifest.name} ${manifest.version}: ${manifest.license ?? 'see below'}`, ...bodies].join(
        '\n\n',
      )
    }),
  )
  const ofNode = `Node.js\n\n${await readFile(join(node, 'LICENSE'), 'utf8')}`
  return [...texts, ofNode]
    .map(text => text.trim())
    .join(`\n\n${'-'.repeat(80)}\n\n`)
    .concat('\n')
}
