/** The list of findings has every number, and each statement in it can be verified. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { hasTitle } from './titles.ts'

const root = new URL('../../..', import.meta.url).pathname
const text = readFileSync(join(root, 'docs/adr/0112-findings-of-three-reviews.md'), 'utf8')

interface Finding {
  readonly id: string
  readonly wrong: string
  readonly commits: string
  readonly proof: string
}

const findingsOf = (section: string): Finding[] => {
  const [, body = ''] = text.split(`\n## ${section}\n`)
  const [own = ''] = body.split('\n## ')
  return own
    .split('\n')
    .filter(line => /^\| (?!# )/.test(line))
    .map(line => line.slice(2, -2).split(' | '))
    .map(([id = '', wrong = '', commits = '', proof = '', ...more]) => {
      if (more.length > 0) throw new Error(`${section} ${id} has too many cells`)
      return { id, wrong, commits, proof }
    })
}

const upTo = (last: number, prefix = '') => Array.from({ length: last }, (_, i) => `${prefix}${i + 1}`)

const sections: readonly [section: string, ids: readonly string[]][] = [
  ['Security', upTo(32)],
  ['Memory', upTo(28)],
  ['Operator', [...upTo(30, 'R'), ...[...'abcdefg'].map(letter => `R31 ${letter}`)]],
  ['Ecosystem', [...upTo(7, '§0.'), ...upTo(17, '§7.')]],
  [
    'Rows of the paper, and what goes beyond it',
    [
      ...['F05', 'F07', 'F13', 'F23', 'F27', 'F33', 'F36', 'F38', 'F14', 'F24', 'F31', 'F10', 'F11', 'F18'],
      ...['N1', 'N13', 'F39', 'F40'],
    ],
  ],
  ['The usual node', upTo(2, 'F')],
  ['Shown on a cluster', ['promoted', 'sidecar', 'load', 'JVM', 'SYN', 'bench']],
]

describe.each(sections)('findings: %s', (section, ids) => {
  const findings = findingsOf(section)

  test('each has its line', () => {
    expect(findings.map(({ id }) => id)).toEqual(ids)
  })

  test('what is not open has a commit or a reason, and what has no test says why', () => {
    const vague = findings.filter(
      ({ wrong, commits, proof }) =>
        wrong === '' ||
        !/^(-|[0-9a-f]{7}(, [0-9a-f]{7})*)$/.test(commits) ||
        (commits === '-' && !/\*\*(open|no defect)\*\*/.test(proof)) ||
        (!/\.test\.ts `/.test(proof) &&
          !/\*\*(open|partly|no defect|no test yet|mended|text)\*\*/.test(proof)),
    )
    expect(vague).toEqual([])
  })

  test('the tests are there', () => {
    const missing = findings.flatMap(({ id, proof }) =>
      [...proof.matchAll(/(\S+\.test\.ts) `([^`]+)`/g)]
        .filter(([, file = '', words = '']) => !hasTitle(join(root, file), words))
        .map(([name]) => `${id}: ${name}`),
    )
    expect(missing).toEqual([])
  })
})
