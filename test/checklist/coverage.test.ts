import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import type { ProjectName, TestResult, TestRun } from '../reporter/results.ts'
import { coverageOf, idsIn, strayIds } from './coverage.ts'
import type { Feature } from './feature.ts'
import { groups } from './features.ts'

const root = new URL('../..', import.meta.url).pathname

// The titles below contain no id themselves, because the checklist reads them too.
const cases: readonly [title: string, ids: readonly string[]][] = [
  ['F15 the first pass makes all three kinds', ['F15']],
  ['scaling > F25 F26 up and down', ['F25', 'F26']],
  ['F17, F18: cold backups first', ['F17', 'F18']],
  ['F01-F03 one object', ['F01', 'F02', 'F03']],
  ['F09 F09 twice', ['F09']],
  ['0xF15, F1 and F15x name nothing', []],
  ['D7.wake-once: whatever is not the request', ['D7.wake-once']],
  ['D10.links: saving', ['D10.links']],
  ['XD7.wake, D7 and D7.1 name nothing', []],
  ['R21: a finding of a review', []],
  ['MP-01, MP-33: and XMP-02, MP-3 and MP-334 not', ['MP-01', 'MP-33']],
  ['no id', []],
]
test('ids are read from titles', () => {
  for (const [title, ids] of cases) expect(idsIn(title), title).toEqual(ids)
})

const run = (...tests: [ProjectName, string, TestResult['state']][]): TestRun => ({
  startedAt: '2030-01-01T00:00:00Z',
  projects: (['unit', 'apiserver', 'e2e'] as const).map(name => ({
    name,
    durationMs: 0,
    tests: tests
      .filter(([project]) => project === name)
      .map(([, title, state]) => ({ file: 'a.test.ts', name: title, state, durationMs: 0 })),
  })),
})
const features: Feature[] = [{ id: 'F01', title: 'anything', provenBy: 'apiserver' }]
const verdict = (of: TestRun) => coverageOf(features, of)[0]?.verdict.type

test('a feature is proven by a passed test of its kind or of a larger one', () => {
  expect(verdict(run(['apiserver', 'F01 works', 'passed']))).toBe('proven')
  expect(verdict(run(['e2e', 'F01 works', 'passed']))).toBe('proven')
})

test('a smaller test alone does not prove it', () => {
  expect(verdict(run(['unit', 'F01 works', 'passed']))).toBe('missing')
})

test('no test names it', () => {
  expect(verdict(run(['e2e', 'F02 works', 'passed']))).toBe('missing')
})

test('one failed test is enough, whatever else passed', () => {
  expect(verdict(run(['e2e', 'F01 works', 'passed'], ['unit', 'F01 too', 'failed']))).toBe('failed')
})

test('skipped tests prove nothing', () => {
  expect(verdict(run(['e2e', 'F01 works', 'skipped']))).toBe('skipped')
})

test('an id that no feature has is a stray', () => {
  expect(strayIds(features, run(['e2e', 'F01 works', 'passed'], ['unit', 'F99 too', 'passed']))).toEqual([
    'F99',
  ])
})

test('ids are unique, and the first group has all of the paper', () => {
  const ids = groups.flatMap(group => group.features.map(({ id }) => id))
  expect(new Set(ids).size).toBe(ids.length)
  expect(groups[0]?.features.map(({ id }) => id)).toEqual(
    Array.from({ length: 40 }, (_, i) => `F${String(i + 1).padStart(2, '0')}`),
  )
})

test('what titles name is listed, and what is listed is named by a title', () => {
  const files = globSync(
    '{src,test,native,build,images,plugin,init-waker,playground,bench,crds,zoo,site}/**/*.test.ts',
    { cwd: root },
  )
    .filter(path => path !== relative(root, import.meta.filename))
    .map(path => readFileSync(join(root, path), 'utf8'))
  // A title is on the line of the call, on the next line, or after a table of cases.
  const named = files
    .flatMap(text => [...text.matchAll(/\b(?:it|test|describe)\b[^\n]*\n?[^\n]*|^ *\]?\)\(\n?[^\n]*/gm)])
    .flatMap(([lines]) => [...lines.matchAll(/(['"`])((?:\\.|(?!\1).)*)\1/g)])
    .flatMap(([, , title = '']) => idsIn(title))
  const listed = groups.flatMap(group => group.features.map(({ id }) => id))
  expect([...new Set(named)].filter(id => !listed.includes(id)).sort()).toEqual([])
  // A table of cases may have the title in its rows.
  expect(listed.filter(id => !files.some(text => text.includes(id)))).toEqual([])
})
