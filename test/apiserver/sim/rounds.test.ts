/** Runs scenarios of the simulation on the real API server: they hold the same invariants and have the same result. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Command } from '../../sim/model/commands.ts'
import { type Round, runRound, type Scenario } from '../../sim/model/round.ts'
import { onRealServer } from '../../sim/real/platform.ts'
import { startServer } from '../../sim/real/rounds.ts'

let server: Awaited<ReturnType<typeof startServer>>
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server?.[Symbol.asyncDispose]())

const usual = {
  seed: 1,
  nodes: 3,
  replicas: 1,
  hotBackups: 1,
  coldBackups: 1,
  copies: 1,
  containers: 'one',
} as const
const at = (afterMs: number, command: Command) => ({ afterMs, command })

const scenarios: readonly (readonly [string, Scenario])[] = [
  [
    'an app dies twice, the second time without a leader and behind watches that lag',
    {
      ...usual,
      containers: 'two',
      steps: [
        at(0, { type: 'endApp', primary: 0, container: 'app' }),
        at(9_000, { type: 'lagOperator', index: 1, resource: 'pods', lagMs: 1_500, forMs: 6_000 }),
        at(0, { type: 'lagAgent', node: 1, resource: 'leases', lagMs: 1_500, forMs: 6_000 }),
        at(0, { type: 'endOperator', index: 0, how: 'kill', forMs: 8_000 }),
        at(500, { type: 'endApp', primary: 0, container: 'side' }),
      ],
    },
  ],
  [
    'a primary is deleted, a planned handover follows, and answers are lost',
    {
      ...usual,
      steps: [
        at(0, { type: 'troubleOperator', index: 0, refusals: 0.3, lostAnswers: 0.2, forMs: 8_000 }),
        at(0, { type: 'deleteNamed', of: 'primary', force: false }),
        at(12_000, { type: 'handOver', primary: 0 }),
      ],
    },
  ],
  [
    'the node of the primary is lost while its backup’s agent is exchanged',
    {
      ...usual,
      nodes: 4,
      steps: [
        // Kubernetes gives the node up after some 20 s, and later on a busy machine.
        at(0, { type: 'losePrimarysNode', primary: 0, forMs: 45_000 }),
        at(200, { type: 'rollAgents' }),
        at(8_000, { type: 'wait' }),
      ],
    },
  ],
]

/** A round on the real server does not repeat exactly, so a failure says what happened at its end. */
const lastWords = 40

/** Sentences: a list of objects would be cut short in the first line of a failure. */
const told = ({ violations }: Round) => violations.map(({ rule, at, what }) => `${rule} at ${at} ms: ${what}`)

describe('a round on the real API server', () => {
  it.each(scenarios)(
    '%s',
    async (_, scenario) => {
      const model = await runRound(scenario)
      expect(told(model)).toEqual([])
      const story: string[] = []
      const log = (at: number, what: string) => void story.push(`${Math.round(at)} ${what}`)
      const real = await onRealServer(server.api, platform => runRound(scenario, log, platform))
      expect(told(real), story.slice(-lastWords).join('\n')).toEqual([])
      expect(real.thaws).toBe(model.thaws)
    },
    900_000,
  )
})
