import { glob, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path/posix'
import { expect, it } from 'vitest'
import { isTest } from '../lint/borders/imports.ts'
import { parseTypeScript } from '../lint/parse.ts'
import { exportsOf } from './exports.ts'

const root = new URL('..', import.meta.url).pathname
const kit = 'src/kube'

const moduleOf = async (path: string) =>
  parseTypeScript(path, await readFile(join(root, path), 'utf8')).module

it('the rest of this project uses the kit through public names only', async () => {
  const allowed = await exportsOf(join(root, kit, 'index.ts'))
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
