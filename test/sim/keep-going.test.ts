import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const main = new URL('main.ts', import.meta.url).pathname
const hooks = new URL('mutants/hooks.ts', import.meta.url).href
/** Makes every round fail from its beginning. */
const always = {
  file: 'test/sim/model/invariants.ts',
  find: 'const violations: Violation[] = []',
  replace: "const violations: Violation[] = [{ rule: 'Crash', at: 0, what: 'of itself' }]",
}

const run = (...options: readonly string[]) =>
  spawnSync(
    process.execPath,
    ['--import', hooks, main, '--rounds', '20', '--seed', '1', '--jobs', '1', ...options],
    { encoding: 'utf8', env: { ...process.env, SIM_MUTATIONS: JSON.stringify([always]) } },
  )

it('a run ends at the first violation, with its smallest scenario', () => {
  const { stdout, status } = run()
  expect(status).toBe(1)
  expect(stdout.match(/--replay/g)).toHaveLength(1)
  expect(stdout).toContain('\n1 rounds with seed 1')
}, 60_000)

it('a run that keeps going makes all its rounds, and tells each kind of violation once', () => {
  const { stdout, status } = run('--keep-going')
  expect(status).toBe(1)
  expect(stdout).toContain('\n20 rounds with seed 1')
  const told = stdout.match(/--replay/g)?.length ?? 0
  const counts = [...stdout.matchAll(/^ *(\d+) times Crash /gm)].map(([, times]) => Number(times))
  expect(counts).toHaveLength(told)
  expect(counts.reduce((sum, times) => sum + times, 0)).toBe(20)
  expect(told).toBeLessThan(20)
}, 60_000)
