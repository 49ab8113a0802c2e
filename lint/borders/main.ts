/** Refuses imports that cross the borders of rooms.ts, and keeps the diagram of docs/architecture.md. */
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { withDiagram } from './diagram.ts'
import { importsOf, violationsOf } from './imports.ts'
import { rooms } from './rooms.ts'

const usage = `node lint/borders/main.ts [--check]

Draws docs/architecture.md from lint/borders/rooms.ts; with --check fails where it is not drawn from it.
Fails where an import crosses a border.`

const root = new URL('../../', import.meta.url)
const page = new URL('docs/architecture.md', root)

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(usage)
    return 0
  }
  const listed = execFileSync('git', ['ls-files', '*.ts'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
  const imports = await Promise.all(
    listed.map(async path => importsOf(path, await readFile(new URL(path, root), 'utf8'))),
  )
  const violations = [...violationsOf(imports.flat(), rooms)]
  const document = await readFile(page, 'utf8')
  const drawn = withDiagram(document, rooms)
  if (!args.includes('--check')) await writeFile(page, drawn)
  else if (drawn !== document)
    violations.push('docs/architecture.md is not drawn from lint/borders/rooms.ts: run `npm run generate`')
  for (const violation of violations) console.error(violation)
  return violations.length > 0 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
