import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseTypeScript } from '../lint/parse.ts'

/** Returns the names that a module exports, each with the file that declares it; files that it exports whole included. */
export async function exportsOf(path: string): Promise<ReadonlyMap<string, string>> {
  const { staticExports } = parseTypeScript(path, await readFile(path, 'utf8')).module
  const found = new Map<string, string>()
  for (const { exportName, moduleRequest } of staticExports.flatMap(({ entries }) => entries)) {
    // Declarations import each other by the names of their sources.
    const target = path.endsWith('.d.ts')
      ? moduleRequest?.value.replace(/\.ts$/u, '.d.ts')
      : moduleRequest?.value
    const file = target === undefined ? path : join(dirname(path), target)
    if (exportName.name !== null) found.set(exportName.name, file)
    else for (const [name, from] of await exportsOf(file)) found.set(name, from)
  }
  return found
}
