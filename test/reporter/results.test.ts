import { expect, test } from 'vitest'
import { type Machine, whyNotHere } from './eligible.ts'
import { type ProjectResult, problem, summaryLine, totalsOf } from './results.ts'

const ran = (...states: ('passed' | 'failed' | 'skipped')[]): ProjectResult => ({
  name: 'unit',
  durationMs: 0,
  tests: states.map(state => ({ file: 'a.test.ts', name: state, state, durationMs: 0 })),
})

test('the last line adds up over all projects', () => {
  const totals = totalsOf([ran('passed', 'passed', 'skipped'), ran('failed'), ran()])
  expect(summaryLine(totals)).toBe('2 passed, 1 failed, 1 skipped')
})

test('a project that did not start cannot hide in the sum', () => {
  const broken: ProjectResult = { name: 'e2e', durationMs: 0, tests: [problem('', '(project)', 'no root')] }
  expect(summaryLine(totalsOf([ran('passed'), broken]))).toBe('1 passed, 1 failed, 0 skipped')
})

test.each<[string, Partial<Machine>, RegExp | undefined]>([
  ['root on Linux', {}, undefined],
  ['a plain user', { uid: 1000 }, /needs root/],
  ['a plain user with a cluster', { uid: 1000, usesCurrentCluster: true }, undefined],
  [
    'a plain user in CI: fails in the setup instead of being skipped',
    { uid: 1000, env: { CI: 'true' } },
    undefined,
  ],
  ['CI switched off', { uid: 1000, env: { CI: 'false' } }, /needs root/],
  ['another system', { platform: 'darwin' }, /needs Linux/],
])('end-to-end tests: %s', (_, machine, reason) => {
  const why = whyNotHere('e2e', {
    platform: 'linux',
    uid: 0,
    env: {},
    usesCurrentCluster: false,
    ...machine,
  })
  if (reason === undefined) expect(why).toBeUndefined()
  else expect(why).toMatch(reason)
})

test('the other projects run everywhere', () => {
  for (const project of ['unit', 'apiserver'] as const)
    expect(
      whyNotHere(project, { platform: 'darwin', uid: 1, env: {}, usesCurrentCluster: false }),
    ).toBeUndefined()
})
