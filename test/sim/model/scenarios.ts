/** Random scenarios, which fast-check shrinks to smaller ones that also fail. */
import fc from 'fast-check'
import type { Command, Lagging, Move } from './commands.ts'
import type { Scenario } from './round.ts'

const index = fc.nat({ max: 5 })
const short = fc.integer({ min: 500, max: 8_000 })
const long = fc.integer({ min: 2_000, max: 40_000 })
const slow = fc.oneof(fc.constant(0), fc.integer({ min: 500, max: 15_000 }))
const how = fc.constantFrom('stop' as const, 'kill' as const)
const ofAgents = fc.constantFrom('pods' as const, 'leases' as const, 'reports' as const)
const resource = fc.constantFrom<Lagging>('pods', 'leases', 'reports', 'sets')
const lagMs = fc.oneof(fc.integer({ min: 100, max: 12_000 }), fc.constant(-1))
const of = <T extends Command['type']>(type: T, fields: object) =>
  fc.record({ type: fc.constant(type), ...fields }) as unknown as fc.Arbitrary<Command>
const after = fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 12_000 }))

export const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: of('endApp', { primary: index, container: fc.constantFrom('app', 'app', 'side', 'proxy') }),
  },
  {
    weight: 2,
    arbitrary: of('hangApp', {
      primary: index,
      forMs: long,
      exitsMs: fc.oneof(fc.constant(undefined), fc.nat({ max: 20 })),
    }),
  },
  { weight: 4, arbitrary: of('deletePod', { pod: index, force: fc.boolean() }) },
  { weight: 4, arbitrary: of('endAgent', { node: index, how, forMs: long }) },
  { weight: 1, arbitrary: of('pauseAgent', { node: index, forMs: short }) },
  { weight: 1, arbitrary: of('rollAgents', {}) },
  { weight: 3, arbitrary: of('endOperator', { index, how, forMs: long }) },
  { weight: 2, arbitrary: of('pauseOperator', { index, forMs: short }) },
  { weight: 3, arbitrary: of('powerOff', { node: index, forMs: long }) },
  { weight: 2, arbitrary: of('losePrimarysNode', { primary: index, forMs: long }) },
  { weight: 1, arbitrary: of('cutPeers', { node: index, forMs: long }) },
  { weight: 1, arbitrary: of('refuseStops', { node: index, forMs: long }) },
  {
    weight: 2,
    arbitrary: of('slowStage', { node: index, startMs: slow, restoreMs: slow, answerMs: slow, forMs: long }),
  },
  { weight: 2, arbitrary: of('cutNode', { node: index, forMs: long, apiOnly: fc.boolean() }) },
  { weight: 3, arbitrary: of('cutPrimarysNode', { primary: index, forMs: long, apiOnly: fc.boolean() }) },
  { weight: 2, arbitrary: of('cutLink', { from: index, to: index, both: fc.boolean(), forMs: long }) },
  { weight: 1, arbitrary: of('pauseMachine', { node: index, forMs: short }) },
  { weight: 2, arbitrary: of('pausePrimarysMachine', { primary: index, forMs: long }) },
  { weight: 1, arbitrary: of('restartSentinel', { node: index, forMs: short }) },
  { weight: 1, arbitrary: of('apiAway', { forMs: long }) },
  { weight: 1, arbitrary: of('cutOperator', { index, forMs: long }) },
  { weight: 4, arbitrary: of('lagOperator', { index, resource, lagMs, forMs: long }) },
  { weight: 2, arbitrary: of('lagAgent', { node: index, resource: ofAgents, lagMs, forMs: long }) },
  {
    weight: 1,
    arbitrary: of('troubleOperator', {
      index,
      refusals: fc.constantFrom(0, 0.3, 0.7),
      lostAnswers: fc.constantFrom(0, 0.2, 0.5),
      forMs: long,
    }),
  },
  {
    weight: 1,
    arbitrary: of('jumpClock', { node: index, byMs: fc.integer({ min: -120_000, max: 120_000 }) }),
  },
  { weight: 1, arbitrary: of('loseCreates', { index, forMs: short }) },
  { weight: 1, arbitrary: of('slowCollector', { forMs: long }) },
  {
    weight: 1,
    arbitrary: of('jumpOperatorsClock', { index, byMs: fc.integer({ min: -120_000, max: 120_000 }) }),
  },
  { weight: 2, arbitrary: of('scale', { replicas: fc.integer({ min: 0, max: 3 }) }) },
  {
    weight: 1,
    arbitrary: of('editBackups', {
      hot: fc.integer({ min: 0, max: 3 }),
      cold: fc.integer({ min: 0, max: 1 }),
    }),
  },
  { weight: 1, arbitrary: of('pauseSet', { forMs: long }) },
  { weight: 1, arbitrary: of('recreateSet', {}) },
  { weight: 2, arbitrary: of('handOver', { primary: index }) },
  { weight: 1, arbitrary: of('editInterval', { seconds: fc.integer({ min: 2, max: 6 }) }) },
)

const any = {
  seed: fc.nat({ max: 2 ** 30 }),
  nodes: fc.integer({ min: 3, max: 5 }),
  replicas: fc.integer({ min: 1, max: 2 }),
  hotBackups: fc.integer({ min: 0, max: 2 }),
  coldBackups: fc.integer({ min: 0, max: 1 }),
  copies: fc.integer({ min: 1, max: 2 }),
  containers: fc.constantFrom('one' as const, 'two' as const, 'sidecar' as const),
  memory: fc.constantFrom(...Array<boolean>(9).fill(true), false),
  probes: fc.constantFrom(false, false, true),
  unreadySeconds: fc.constantFrom(4, 4, 4, 30),
  nodeTimeoutMs: fc.constantFrom(undefined, undefined, 1_500, 3_000, 3_000, 10_000),
  grants: fc.constantFrom(false, false, true),
  announced: fc.boolean(),
  graves: fc.constantFrom(...Array<boolean>(5).fill(true), false),
}

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  ...any,
  steps: fc.array(fc.record({ afterMs: after, command }), { minLength: 1, maxLength: 6 }),
})

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('move' as const),
      primary: index,
      to: fc.oneof(fc.constant(undefined), fc.constant(undefined), index),
      maxDowntimeMs: fc.constantFrom(undefined, undefined, 300, 3_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('abortMove' as const), move: index }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('drain' as const), node: index, forMs: long }) },
)

/** Each begins with a move or a drain, and most faults follow while it lasts. */
const ofAnySet: fc.Arbitrary<Scenario> = fc.record({
  ...any,
  memory: fc.constant(true),
  moves: fc.constant(true),
  numbered: fc.constantFrom(false, false, true),
  steps: fc
    .tuple(
      fc.record({ afterMs: after, command: move }),
      fc.array(
        fc.record({
          afterMs: after,
          command: fc.oneof({ weight: 2, arbitrary: command }, { weight: 1, arbitrary: move }),
        }),
        { minLength: 1, maxLength: 5 },
      ),
    )
    .map(([first, others]) => [first, ...others]),
})

/** The same; some sets belong to a MigratingPod, and so have one primary and no backups. */
export const movingScenario: fc.Arbitrary<Scenario> = ofAnySet.map(each =>
  each.numbered ? { ...each, replicas: 1, hotBackups: 0, coldBackups: 0 } : each,
)

/** Each is suspended and resumes, and most faults come while that lasts. */
export const nappingScenario: fc.Arbitrary<Scenario> = fc.record({
  ...any,
  memory: fc.constant(true),
  steps: fc
    .tuple(
      fc.array(fc.record({ afterMs: after, command }), { maxLength: 1 }),
      fc.record({ afterMs: after, command: of('nap', { forMs: long }) }),
      fc.array(fc.record({ afterMs: after, command }), { minLength: 1, maxLength: 4 }),
    )
    .map(([before, nap, others]) => [...before, nap, ...others]),
})

/** The same, where heirs get grants: an understudy that is the heir of several slots gets none. */
export const granted = (scenarios: fc.Arbitrary<Scenario>): fc.Arbitrary<Scenario> =>
  scenarios.map(each => ({
    ...each,
    ...{ memory: true, grants: true },
    hotBackups: each.numbered ? each.hotBackups : Math.max(each.hotBackups, each.replicas),
  }))
