/** Refuses casts in tests that hide a renamed field from the type checker. */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { castsOf, refusalOf } from './casts.ts'

const root = new URL('../../', import.meta.url)
const listed = execFileSync('git', ['ls-files', '*.test.ts'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')
const casts = await Promise.all(
  listed.map(async path => castsOf(path, await readFile(new URL(path, root), 'utf8'))),
)
const violations = casts.flat()
for (const cast of violations) console.error(refusalOf(cast))
process.exitCode = violations.length > 0 ? 1 : 0
