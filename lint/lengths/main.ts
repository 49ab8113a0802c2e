/** Refuses files and functions that are longer than lengths.ts allows. */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { tooLong } from './lengths.ts'
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
  const found = (
    await Promise.all(paths.map(async path => tooLong(path, await readFile(new URL(path, root), 'utf8'))))
  ).flat()
  const [exempt, refused] = [true, false].map(isExempt =>
    found.filter(({ path }) => notYet.files.includes(path) === isExempt),
  )
  for (const { sentence } of exempt ?? []) console.log(`not yet, since ${notYet.since}: ${sentence}`)
  for (const { sentence } of refused ?? []) console.error(sentence)
  const needless = notYet.files.filter(path => !exempt?.some(each => each.path === path))
  for (const path of needless) console.error(`${path} needs no entry in lint/lengths/not-yet.ts any more`)
  return needless.length + (refused?.length ?? 0) > 0 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
