/** The traces that operators and agents make, in the simulation: each process knows only what it has seen itself. */
import { describe, expect, it } from 'vitest'
import { rootOf, type Span } from '../../src/traces/span.ts'
import type { Command } from './model/commands.ts'
import { modelPlatform } from './model/platform.ts'
import { runRound, type Scenario } from './model/round.ts'

interface Told extends Span {
  readonly by: string
}

const usual: Omit<Scenario, 'steps'> = {
  ...{ seed: 1, nodes: 3, replicas: 1, hotBackups: 1, coldBackups: 1, copies: 1 },
  containers: 'one',
}
const at = (afterMs: number, command: Command) => ({ afterMs, command })

async function tracesOf(scenario: Scenario): Promise<ReadonlyMap<string, readonly Told[]>> {
  const spans: Told[] = []
  const platform = {
    ...modelPlatform(),
    traceOf: (by: string) => (make: () => readonly Span[]) => {
      for (const span of make()) spans.push({ ...span, by })
    },
  }
  const { violations } = await runRound(scenario, undefined, platform)
  expect(violations).toEqual([])
  return Map.groupBy(spans, ({ traceId }) => traceId)
}

const rootsOf = (spans: readonly Told[]) => spans.filter(({ parentId }) => parentId === undefined)
const named = (spans: readonly Told[], name: string) => spans.filter(span => span.name === name)

/** Every span leads to the root, and no id is used twice for different spans. */
function expectOneTree(spans: readonly Told[]): Told {
  const [root, ...others] = rootsOf(spans)
  if (root === undefined) throw new Error('no root')
  expect(others).toEqual([])
  expect(root.spanId).toBe(rootOf(root.traceId))
  const ids = new Set(spans.map(({ spanId }) => spanId))
  expect(ids.size).toBe(spans.length)
  for (const { parentId } of spans) if (parentId !== undefined) expect(ids).toContain(parentId)
  for (const { from, to } of spans) expect(to).toBeGreaterThanOrEqual(from)
  return root
}

describe('the trace of a failover', () => {
  it.each([
    ['an app ends', {}, []],
    ['an app ends, and its heir has a grant', { grants: true }, ['use the grant of the heir']],
  ])('is one tree of operator and agents: %s', async (_, more, agents) => {
    const traces = await tracesOf({
      ...{ ...usual, ...more },
      steps: [at(9_000, { type: 'endApp', primary: 0, container: 'app' })],
    })
    const failovers = [...traces.values()].filter(spans => named(spans, 'failover').length > 0)
    expect(failovers).toHaveLength(1)
    const [spans = []] = failovers
    const root = expectOneTree(spans)
    expect(root).toMatchObject({ by: 'operator', attributes: { 'understudy.died_at.known': true } })
    const names = spans.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining([
        ...['detect and report the death', 'take over', 'thaw', 'wait until the app answers'],
        ...['decide and write the Lease', 'write label and endpoints', ...agents],
      ]),
    )
    const nodesOf = (name: string) => new Set(named(spans, name).map(({ by }) => by))
    const [lost, heir] = [nodesOf('detect and report the death'), nodesOf('take over')]
    expect(lost.isDisjointFrom(heir)).toBe(true)
    expect(named(spans, 'take over').every(({ failure }) => failure === undefined)).toBe(true)
    // The steps of both sides lie within the failover, except what an agent does after the operator has written the label.
    for (const span of named(spans, 'take over')) expect(span.from).toBeGreaterThanOrEqual(root.from)
  })
})

describe('the trace of a Migration', () => {
  it('is one tree: the phases of the status, the last save at the source, the takeover at the target', async () => {
    const traces = await tracesOf({
      ...{ ...usual, moves: true },
      steps: [at(9_000, { type: 'move', primary: 0, to: undefined, maxDowntimeMs: undefined })],
    })
    const moves = [...traces.values()].filter(spans => named(spans, 'migration').length > 0)
    expect(moves).toHaveLength(1)
    const [spans = []] = moves
    const root = expectOneTree(spans)
    expect(root.failure).toBeUndefined()
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['Preparing', 'Stopping', 'stop and save the last changes', 'take over']),
    )
  })
})
