import { describe, expect, it } from 'vitest'
import { explore } from '../explore.ts'
import { fenceModel } from './model.ts'
import { fenceMutants } from './mutants.ts'
import { exploreMutant } from './run.ts'

describe('a slot has one primary', () => {
  it.each([
    { holders: 1, ticks: 3, changes: 1, reboots: 1 },
    { holders: 2, ticks: 4, changes: 0, reboots: 0 },
    { holders: 2, ticks: 1, changes: 1, reboots: 1 },
    { holders: 4, ticks: 1, changes: 0, reboots: 1 },
  ])('in every state of $holders holders, $ticks ticks, $changes changes, $reboots restarts', bounds => {
    const { states, counterexample } = explore(fenceModel(bounds))
    expect(counterexample).toBeUndefined()
    expect(states).toBeGreaterThan(100)
  })

  it('only because a voter that was restarted is another voter', () => {
    const bounds = { holders: 1, ticks: 1, changes: 0, reboots: 1 }
    expect(explore(fenceModel(bounds, { runs: false, electorates: true })).counterexample).toBeDefined()
  })

  it('only because a primary does not forget the electorate that it has acknowledged', () => {
    const bounds = { holders: 2, ticks: 1, changes: 2, reboots: 0 }
    expect(explore(fenceModel(bounds, { runs: true, electorates: false })).counterexample).toBeDefined()
  })

  it.each(fenceMutants)('not if $name', async ({ bounds, ...mutation }) => {
    expect((await exploreMutant(bounds, mutation)).counterexample).toBeDefined()
  })
})
