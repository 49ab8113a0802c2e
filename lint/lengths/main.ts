/** Refuses files and functions that are longer than lengths.ts allows. */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { judge, tooLong } from './lengths.ts'
import { notYet } from './not-yet.ts'

const usage = `node lint/lengths/main.ts

Fails where a function has more than 60 lines of its own, and where a file with more than 300 lines
has no line in its head that begins with "Long because". Lists the files that are exempt for now.`

const root = new URL('../../', import.meta.url)

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(usage)
    return 0
  }
  const listed = execFileSync('git', ['ls-files', '*.ts', '*.c', '*.h'], { cwd: root, encoding: 'utf8' })
  const paths = listed.trim().split('\n')
  const found = await Promise.all(
    paths.map(async path => tooLong(path, await readFile(new URL(path, root), 'utf8'))),
  )
  const { exempt, refused } = judge(found.flat(), notYet.files)
  for (const sentence of exempt) console.log(`not yet, since ${notYet.since}: ${sentence}`)
  for (const sentence of refused) console.error(sentence)
  return refused.length > 0 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
