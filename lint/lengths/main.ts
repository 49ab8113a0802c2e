/** Refuses files and functions that are longer than lengths.ts allows. */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { tooLong } from './lengths.ts'

const usage = `node lint/lengths/main.ts

Fails where a function has more than 60 lines of its own, and where a file with more than 300 lines
has no line in its head that begins with "Long because".`

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
  const sentences = found.flat()
  for (const sentence of sentences) console.error(sentence)
  return sentences.length > 0 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
