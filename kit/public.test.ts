import { glob, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path/posix'
import { expect, it } from 'vitest'
import { isTest } from '../lint/borders/imports.ts'
import { parseTypeScript } from '../lint/parse.ts'

const root = new URL('..', import.meta.url).pathname
const kit = 'src/kube'

const moduleOf = async (path: string) =>
  parseTypeScript(path, await readFile(join(root, path), 'utf8')).module

/** The names that a file exports, with those of the files that it exports whole. */
async function exportsOf(path: string): Promise<readonly string[]> {
  const { staticExports } = await moduleOf(path)
  const names = staticExports
    .flatMap(({ entries }) => entries)
    .map(({ exportName, moduleRequest }) =>
      exportName.name === null
        ? exportsOf(join(dirname(path), moduleRequest?.value ?? ''))
        : [exportName.name],
    )
  return (await Promise.all(names)).flat()
}

it('the rest of this project uses the kit through public names only', async () => {
  const allowed = new Set(await exportsOf(`${kit}/index.ts`))
  const found: string[] = []
  let used = 0
  for await (const path of glob('src/**/*.ts', { cwd: root })) {
    if (isTest(path) || path.startsWith(`${kit}/`)) continue
    for (const { moduleRequest, entries } of (await moduleOf(path)).staticImports) {
      if (!join(dirname(path), moduleRequest.value).startsWith(`${kit}/`)) continue
      for (const { importName } of entries) {
        used += 1
        const name = importName.name ?? '*'
        if (!allowed.has(name)) found.push(`${path}: ${name} of ${moduleRequest.value}`)
      }
    }
  }
  expect(used).toBeGreaterThan(100)
  expect(found).toEqual([])
})
