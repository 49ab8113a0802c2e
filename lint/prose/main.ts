/** `npm run prose`: sentences of comments and documents that break the style of CONTRIBUTING.md. */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { lintProse } from './lint.ts'

const usage = `npm run prose -- [paths]   lints these files and directories; default: all`

const isProse = (path: string): boolean => /\.(?:ts|c|h|md)$/u.test(path)

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(usage)
    return 0
  }
  const root = new URL('../..', import.meta.url).pathname
  const listed = execFileSync('git', ['ls-files', '--', ...args], { cwd: root, encoding: 'utf8' })
  let sentences = 0
  let found = 0
  for (const path of listed.split('\n').filter(isProse)) {
    const linted = await lintProse(path, await readFile(new URL(`../../${path}`, import.meta.url), 'utf8'))
    sentences += linted.sentences
    found += linted.findings.length
    for (const { line, sentence, advice } of linted.findings)
      console.log(`${path}:${line}: ${sentence}\n    ${advice}`)
  }
  console.log(`${found} of ${sentences} sentences break a rule of CONTRIBUTING.md`)
  return found > 0 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
