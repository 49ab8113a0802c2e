// Long because it is a list of situations for one pure function.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MigrationPhase, MigrationSpec, MigrationStatus } from '../api/migration.ts'
import { parseMigration } from '../api/parse-migration.ts'
import { timelyMs } from '../slot/decide/deadlines.ts'
import { defaultBudgets as budgets, type MigrationBudgets } from './budgets.ts'
import { decide as decideWithin, mostWrites, settlesMs } from './next.ts'
import { mostKept } from './retention.ts'
import type { Facts, Held, MigrationView, Target } from './view.ts'

const now = Date.UTC(2030, 0, 1, 12)
const ago = (ms: number) => new Date(now - ms).toISOString()

const decide = (views: readonly MigrationView[], at: number, within: MigrationBudgets = budgets) =>
  decideWithin(views, at, within)

const held = (over: Partial<Held> = {}): Held => ({
  type: 'held',
  source: { uid: 'uid-p', node: 'n1', set: 'web', slot: 0 },
  ...{ isPaused: false, isStopping: false, target: undefined, nodes: 2, restartMs: 2_000 },
  saved: { generation: 7, bytes: 1_000, obstacle: undefined },
  silentMs: 0,
  ...over,
})

const target = (over: Partial<Target> = {}): Target => ({
  ...{ name: 'web-t', uid: 'uid-t', node: 'n2', createdAt: 0, unschedulable: undefined, failed: undefined },
  ...{ hasMemory: true, impliedDowntimeMs: 150, waited: { generations: 1, ms: 0 } },
  ...over,
})

const passed = (over: Partial<Extract<Facts, { type: 'passed' }>> = {}): Facts => ({
  type: 'passed',
  to: { name: 'web-t', uid: 'uid-t', node: 'n2' },
  ...{ serves: true, isLoss: false, isOutside: false, downtimeMs: 120.4 },
  ...over,
})

function view(
  facts: Facts,
  phase?: MigrationPhase,
  over: Partial<MigrationView> & { readonly spec?: Partial<MigrationSpec> } = {},
): MigrationView {
  const { spec, ...rest } = over
  const status: MigrationStatus =
    phase === undefined ? {} : { phase, phaseTimes: [{ phase, at: ago(1_000) }], source: held().source }
  return {
    ...{ namespace: 'default', name: 'm', uid: 'uid-m', resourceVersion: '1', generation: 1, createdAt: 1 },
    wish: parseMigration({ spec: { source: { name: 'web-p' }, ...spec } }),
    ...{ status, facts },
    ...rest,
  }
}

/** Phase and reason after one look at a single Migration. */
function outcomeOf(one: MigrationView): readonly [MigrationPhase | undefined, string | undefined] {
  const [next] = decide([one], now).statuses
  const status = next?.status ?? one.status
  return [status.phase, status.conditions?.[0]?.reason]
}

const begun = (phase: MigrationPhase, ms: number): Partial<MigrationView> => ({
  status: { phase, phaseTimes: [{ phase: 'Reserving', at: ago(ms) }], source: held().source },
})

describe('D16.phases: a Migration', () => {
  it.each<[string, MigrationView, MigrationPhase, string]>([
    ['begins', view(held()), 'Reserving', 'Begins'],
    ['does not begin while its set is paused', view(held({ isPaused: true })), 'Pending', 'SetPaused'],
    ['waits while its set is suspended', view(held({ isSuspended: true })), 'Pending', 'SetSuspended'],
    ['ends, if it has begun', view(held({ isSuspended: true }), 'Reserving'), 'Reserving', 'TargetComing'],
    ['waits for a pod', view(held(), 'Reserving'), 'Reserving', 'TargetComing'],
    ['tells that no node can have it', view(held({ nodes: 0 }), 'Reserving'), 'Reserving', 'NoNode'],
    [
      'tells in the words of the scheduler that the pod finds no node',
      view(held({ target: target({ node: undefined, unschedulable: '0/3 nodes' }) }), 'Reserving'),
      'Reserving',
      'Unschedulable',
    ],
    [
      'waits for the memory',
      view(held({ target: target({ hasMemory: false }) }), 'Reserving'),
      'Preparing',
      'MemoryComing',
    ],
    [
      'waits for the other primaries of the set',
      view(held({ target: target() }), 'Preparing'),
      'Preparing',
      'SetBusy',
    ],
    [
      'does not stop its source for longer than it may',
      view(held({ target: target() }), 'Preparing', { spec: { maxDowntime: '100ms' } }),
      'Preparing',
      'DowntimeTooLong',
    ],
    [
      'tells that its source cannot be saved',
      view(held({ saved: { generation: 0, bytes: undefined, obstacle: 'io_uring' } }), 'Preparing'),
      'Reserving',
      'NotSaved',
    ],
    [
      'tells that nobody would stop its source',
      view(held({ target: target(), silentMs: timelyMs + 1 }), 'Preparing'),
      'Preparing',
      'AgentSilent',
    ],
    ['tells that its set is paused', view(held({ isPaused: true }), 'Preparing'), 'Reserving', 'SetPaused'],
    [
      'stops its source',
      view(held({ isStopping: true, target: target() }), 'Preparing'),
      'Stopping',
      'Stopping',
    ],
    [
      'goes back when the stop is called off',
      view(held({ target: target() }), 'Stopping'),
      'Preparing',
      'SetBusy',
    ],
    [
      'waits after a stop that was given up',
      view(
        held({
          target: target(),
          saved: { generation: 3, bytes: 9, obstacle: undefined, handoverPaused: true },
        }),
        'Stopping',
      ),
      'Preparing',
      'SetBusy',
    ],
    ['switches', view(passed({ serves: false }), 'Stopping'), 'Switching', 'Switching'],
    ['has moved', view(passed(), 'Switching'), 'Succeeded', 'Moved'],
    [
      'ends when its source is lost meanwhile',
      view(passed({ isLoss: true }), 'Preparing'),
      'Failed',
      'SourceLost',
    ],
    [
      'has not moved if another handover took the slot to a node that it does not allow',
      view(passed({ isOutside: true }), 'Stopping'),
      'Failed',
      'MovedElsewhere',
    ],
    [
      'does not wait for the stop of a set that was paused meanwhile',
      view(held({ isStopping: true, isPaused: true, target: target() }), 'Stopping'),
      'Preparing',
      'SetPaused',
    ],
    [
      'ends when its slot is gone',
      view({ type: 'absent', seenForMs: settlesMs }, 'Preparing'),
      'Failed',
      'SourceGone',
    ],
    [
      'ends when its pod could not be given the memory',
      view(held({ target: target({ failed: 'torn' }) }), 'Preparing'),
      'Failed',
      'TargetFailed',
    ],
  ])('%s', (_, one, phase, reason) => expect(outcomeOf(one)).toEqual([phase, reason]))

  it.each<[string, Facts, string]>([
    ['of no pod', { type: 'absent', seenForMs: settlesMs }, 'SourceNotFound'],
    ['of a pod of another uid', { type: 'another' }, 'SourceReplaced'],
    ['of a backup', { type: 'backup', seenForMs: settlesMs }, 'NotAPrimary'],
    ['of a pod without memory', { type: 'unkept', seenForMs: settlesMs }, 'NoMemory'],
  ])('%s fails', (_, facts, reason) => expect(outcomeOf(view(facts))).toEqual(['Failed', reason]))

  it('waits where a cache may be older than it', () => {
    expect(outcomeOf(view({ type: 'absent', seenForMs: settlesMs - 1 }))).toEqual([
      'Pending',
      'SourceNotFound',
    ])
    expect(outcomeOf(view({ type: 'unkept', seenForMs: 0 }))).toEqual(['Pending', 'NoMemory'])
    // A pod that has just taken over has the Lease before it has the label of a primary.
    expect(outcomeOf(view({ type: 'backup', seenForMs: 0 }))).toEqual(['Pending', 'NotAPrimary'])
    expect(outcomeOf(view({ type: 'absent', seenForMs: 0 }, 'Preparing'))).toEqual([
      'Preparing',
      'SourceGone',
    ])
  })

  it('with an unreadable spec fails, and tells which field to change', () => {
    const one = view(held(), undefined, { spec: { maxDowntime: 'soon' } })
    const [next] = decide([one], now).statuses
    expect(next?.status).toMatchObject({
      phase: 'Failed',
      conditions: [
        { status: 'False', reason: 'InvalidValue', message: expect.stringContaining('maxDowntime') },
      ],
    })
  })

  it('fails after its time-outs, with the reason for which it waited, and never while its source stands still', () => {
    const unscheduled = held({ target: target({ node: undefined, unschedulable: 'no room' }) })
    expect(outcomeOf(view(unscheduled, undefined, begun('Reserving', 299_000)))).toEqual([
      'Reserving',
      'Unschedulable',
    ])
    expect(outcomeOf(view(unscheduled, undefined, begun('Reserving', 300_000)))).toEqual([
      'Failed',
      'Unschedulable',
    ])
    // Another Migration has taken the pod of before, and this one has just been made.
    const made = (agoMs: number) =>
      held({ target: target({ node: undefined, unschedulable: 'no room', createdAt: now - agoMs }) })
    expect(outcomeOf(view(made(299_000), undefined, begun('Reserving', 800_000)))[0]).toBe('Reserving')
    expect(outcomeOf(view(made(300_000), undefined, begun('Reserving', 800_000)))[0]).toBe('Failed')
    const nowhere = held({ nodes: 0 })
    expect(outcomeOf(view(nowhere, undefined, begun('Reserving', 299_000)))).toEqual(['Reserving', 'NoNode'])
    expect(outcomeOf(view(nowhere, undefined, begun('Reserving', 300_000)))).toEqual(['Failed', 'NoNode'])
    const slow = held({ target: target({ hasMemory: false }) })
    expect(outcomeOf(view(slow, undefined, begun('Preparing', 899_000)))).toEqual([
      'Preparing',
      'MemoryComing',
    ])
    expect(outcomeOf(view(slow, undefined, begun('Preparing', 900_000)))).toEqual(['Failed', 'MemoryComing'])
    const standing = held({ isStopping: true, target: target() })
    expect(outcomeOf(view(standing, undefined, begun('Preparing', 900_000)))).toEqual([
      'Stopping',
      'Stopping',
    ])
  })

  it('does not wait without end for a successor that does not serve', () => {
    const since = (ms: number): Partial<MigrationView> => ({
      status: {
        phase: 'Switching',
        phaseTimes: [{ phase: 'Switching', at: ago(ms) }],
        source: held().source,
      },
    })
    const coming = (ms: number) => view(passed({ serves: false }), undefined, since(ms))
    expect(outcomeOf(coming(899_000))).toEqual(['Switching', 'Switching'])
    expect(decide([coming(899_000)], now).againAfterMs).toBe(1_000)
    expect(outcomeOf(coming(900_000))).toEqual(['Failed', 'NotServing'])
  })

  it('looks again when a cache must have caught up, although nothing happens', () => {
    expect(decide([view({ type: 'absent', seenForMs: 4_000 })], now).againAfterMs).toBe(settlesMs - 4_000)
    expect(decide([view({ type: 'unkept', seenForMs: 0 })], now).againAfterMs).toBe(settlesMs)
    expect(decide([view({ type: 'backup', seenForMs: 0 })], now).againAfterMs).toBe(settlesMs)
  })

  describe('MP-32 the prediction', () => {
    const waited = { generations: 4, ms: 5_000 }
    const slow = (restartMs: number, over: Partial<Target> = {}) =>
      held({ restartMs, target: target({ impliedDowntimeMs: 900, waited, ...over }) })
    const spec = { maxDowntime: '300ms', technique: 'LiveIfPossible' } as const
    const next = (one: MigrationView) => decide([one], now).statuses[0]?.status ?? one.status

    it('lets the pod move if a restart would be longer, and tells both times', () => {
      const status = next(view(slow(2_000), 'Preparing', { spec }))
      expect(status).toMatchObject({
        ...{ predictedDowntimeMilliseconds: 900, predictedRestartMilliseconds: 2_000, acceptsDowntime: true },
        conditions: [{ reason: 'SetBusy' }],
      })
    })

    it('keeps the pod where it is if a restart would be shorter, until the time-out, and tells both times', () => {
      const status = next(view(slow(800), 'Preparing', { spec }))
      expect(status.acceptsDowntime).toBeUndefined()
      expect(status.conditions?.[0]).toMatchObject({
        reason: 'DowntimeTooLong',
        message:
          'the pod would be stopped for about 900 ms, and maxDowntime is 300 ms; a restart would take about 800 ms or more',
      })
      const late = view(slow(800), undefined, { ...begun('Preparing', 900_000), spec })
      expect(outcomeOf(late)).toEqual(['Failed', 'DowntimeTooLong'])
    })

    it('keeps no primary of a drain for longer than its patience', () => {
      const ofDrain = { spec: { maxDowntime: '300ms', priority: 'SystemCritical' } } as const
      const young = slow(1, { waited: { generations: 1, ms: 4_000 } })
      expect(outcomeOf(view(young, 'Preparing', ofDrain))[1]).toBe('DowntimeTooLong')
      expect(decide([view(young, 'Preparing', ofDrain)], now).againAfterMs).toBe(26_000)
      expect(next(view(slow(1), 'Preparing', ofDrain)).acceptsDowntime).toBe(true)
    })

    it('begins again with another target, and stays as it was before the stop', () => {
      const before = { predictedDowntimeMilliseconds: 900, acceptsDowntime: true } as const
      const told = (facts: Facts, phase: MigrationPhase) => {
        const one = view(facts, phase, { spec })
        return next({ ...one, status: { ...one.status, ...before } })
      }
      expect(told(slow(2_000, { hasMemory: false, waited: undefined }), 'Preparing').acceptsDowntime).toBe(
        false,
      )
      const stopped = held({ isStopping: true, target: target({ impliedDowntimeMs: 5_000 }) })
      expect(told(stopped, 'Preparing')).toMatchObject({ phase: 'Stopping', ...before })
      expect(told(passed(), 'Switching')).toMatchObject({ downtimeMilliseconds: 120, ...before })
    })
  })

  it('that has ended changes no more', () => {
    for (const phase of ['Succeeded', 'Failed'] as const)
      expect(decide([view(held(), phase)], now).statuses).toEqual([])
  })

  it('tells from where to where it goes, with which memory, and how long the pod stood still', () => {
    const [reserving] = decide([view(held())], now).statuses
    expect(reserving?.status).toMatchObject({
      source: { node: 'n1', set: 'web', slot: 0 },
      generation: 7,
      bytes: 1_000,
      conditions: [{ type: 'Succeeded', status: 'Unknown' }],
    })
    const [done] = decide([view(passed(), 'Switching')], now).statuses
    expect(done?.status).toMatchObject({
      target: { name: 'web-t', node: 'n2' },
      downtimeMilliseconds: 120,
      conditions: [{ status: 'True', message: 'web-t serves on node n2' }],
    })
  })
})

describe('D16.budgets: Migrations', () => {
  const many = (
    count: number,
    of: (i: number) => Partial<Held['source']>,
    over: Partial<MigrationView> = {},
  ) =>
    Array.from({ length: count }, (_, i) =>
      view(held({ source: { uid: `uid-${i}`, node: 'n1', set: `s${i}`, slot: i, ...of(i) } }), undefined, {
        ...{ name: `m${i}`, uid: `m${i}`, createdAt: i },
        ...over,
      }),
    )
  const phases = (views: readonly MigrationView[]) =>
    new Map(decide(views, now).statuses.map(({ view: { name }, status }) => [name, status.phase]))
  const reasonsOf = (views: readonly MigrationView[], within?: MigrationBudgets) =>
    decide(views, now, within).statuses.map(({ status }) => status.conditions?.[0]?.reason)

  it('of one set go two at a time, and of one slot one after the other', () => {
    expect(reasonsOf(many(3, i => ({ set: 'web', node: `n${i}` })))).toEqual(['Begins', 'Begins', 'SetBusy'])
    expect(reasonsOf(many(2, i => ({ set: 'web', node: `n${i}`, slot: 0 })))).toEqual(['Begins', 'SetBusy'])
  })

  it.each([
    ['perSet', 'SetBusy', () => ({ set: 'web' })],
    ['perNode', 'NodeBudget', () => ({})],
    ['perNamespace', 'NamespaceBudget', (i: number) => ({ node: `n${i}` })],
    ['total', 'TotalBudget', (i: number) => ({ node: `n${i}` })],
  ] as const)('are limited by the option for %s', (budget, reason, of) => {
    const wide = { perSet: 9, perNode: 9, perNamespace: 9, total: 9 }
    expect(reasonsOf(many(5, of), wide)).toEqual(Array.from({ length: 5 }, () => 'Begins'))
    expect(reasonsOf(many(5, of), { ...wide, [budget]: 4 })).toEqual([
      ...Array.from({ length: 4 }, () => 'Begins'),
      reason,
    ])
  })

  it('leave a node two at a time, a namespace three at a time, and are eight in all', () => {
    expect(reasonsOf(many(3, () => ({})))).toEqual(['Begins', 'Begins', 'NodeBudget'])
    expect(reasonsOf(many(4, i => ({ node: `n${i}` })))).toEqual([
      ...Array.from({ length: budgets.perNamespace }, () => 'Begins'),
      'NamespaceBudget',
    ])
    const spread = many(10, i => ({ node: `n${i}` })).map((each, i) => ({ ...each, namespace: `t${i}` }))
    expect(reasonsOf(spread)).toEqual([
      ...Array.from({ length: budgets.total }, () => 'Begins'),
      ...['TotalBudget', 'TotalBudget'],
    ])
  })

  it('of a drain begin although those of users have all places', () => {
    const urgent = {
      wish: parseMigration({ spec: { source: { name: 'web-p' }, priority: 'SystemCritical' } }),
    } as const
    const ofUsers = many(2, () => ({})).map(each => ({ ...each, status: { phase: 'Reserving' } as const }))
    const ofDrain = many(3, i => ({ uid: `d${i}`, set: `d${i}` }), urgent).map((each, i) => ({
      ...{ ...each, name: `d${i}`, uid: `d${i}` },
    }))
    const told = phases([...ofUsers, ...ofDrain])
    expect(['d0', 'd1', 'd2'].map(name => told.get(name))).toEqual(['Reserving', 'Reserving', 'Pending'])
    // Also if they are of the same set.
    const ofSet = [...ofUsers, ...ofDrain].map((each, i) => ({
      ...each,
      facts: held({ source: { uid: `uid-${i}`, node: 'n1', set: 'web', slot: i } }),
    }))
    expect(phases(ofSet).get('d1')).toBe('Reserving')
    // Not the other way round: what a drain does counts for users.
    const begun = ofDrain.slice(0, 2).map(each => ({ ...each, status: { phase: 'Reserving' } as const }))
    expect(phases([...begun, ...many(1, () => ({}))]).get('m0')).toBe('Pending')
  })

  it('that wait are written once, not for each generation of their pods', () => {
    const at = (generation: number) =>
      many(4, () => ({ set: 'web' })).map(each => {
        const saved = { generation, bytes: generation, obstacle: undefined }
        const facts = { saved, target: target({ impliedDowntimeMs: 10 * generation }) }
        return { ...each, facts: each.facts.type === 'held' ? { ...each.facts, ...facts } : each.facts }
      })
    const settled = (generation: number) => {
      const phased = new Map(decide(at(7), now).statuses.map(({ view: { name }, status }) => [name, status]))
      return at(generation).map(each => ({ ...each, status: phased.get(each.name) ?? {} }))
    }
    const waiting = decide(settled(8), now).statuses.filter(({ status }) => status.phase === 'Pending')
    expect(waiting).toEqual([])
  })

  it('are written some at a time, those first that do not wait', () => {
    const views = many(200, () => ({ set: 'web' }))
    const { statuses, againAfterMs } = decide(views.toReversed(), now)
    expect(statuses).toHaveLength(mostWrites)
    expect(statuses[0]?.status.phase).toBe('Reserving')
    expect(againAfterMs).toBe(1_000)
  })

  it('begin in the order of their priority, then of their age; what is under way stays so', () => {
    const [a, b, c] = many(3, () => ({}))
    if (!a || !b || !c) throw new Error('three')
    const urgent = {
      ...c,
      wish: parseMigration({ spec: { source: { name: 'web-p' }, priority: 'SystemCritical' } }),
    }
    expect(phases([b, a, urgent])).toEqual(
      new Map([
        ['m2', 'Reserving'],
        ['m0', 'Reserving'],
        ['m1', 'Pending'],
      ]),
    )
    const running = [a, b].map(each => ({ ...each, ...begun('Preparing', 1_000) }))
    const source = { ...held().source, node: 'n1' }
    const both = running.map((each, i) => ({
      ...each,
      status: { ...each.status, source: { ...source, set: `s${i}` } },
    }))
    const next = { ...c, createdAt: -1 }
    expect(phases([...both, next]).get('m2')).toBe('Pending')
  })

  it('never exceed a budget, and let one begin while any may, in random worlds', () => {
    const world = fc.array(
      fc.record({
        set: fc.nat(4),
        slot: fc.nat(3),
        node: fc.nat(5),
        space: fc.nat(4),
        isRunning: fc.boolean(),
        created: fc.nat(9),
      }),
      { maxLength: 16 },
    )
    fc.assert(
      fc.property(world, given => {
        const views = given.map(({ set, slot, node, space, isRunning, created }, i) => {
          const source = { uid: `uid-${i}`, node: `n${node}`, set: `s${set}`, slot }
          const facts = held({ source, target: target() })
          const status: MigrationStatus = isRunning ? { phase: 'Preparing', source } : {}
          const metadata = { namespace: `t${space}`, name: `m${i}`, uid: `m${i}` }
          return view(facts, undefined, { ...metadata, createdAt: created, status })
        })
        const begins = new Set(
          decide(views, now).statuses.flatMap(each =>
            each.view.status.phase === undefined && each.status.phase === 'Reserving' ? [each.view] : [],
          ),
        )
        const running = views.filter(({ status }) => status.phase !== undefined)
        const active = [...running, ...begins]
        const sourceOf = ({ facts }: MigrationView) => (facts.type === 'held' ? facts.source : undefined)
        const setOf = (one: MigrationView) => `${one.namespace}/${sourceOf(one)?.set}`
        const slotOf = (one: MigrationView) => `${setOf(one)}/${sourceOf(one)?.slot}`
        const count = (test: (one: MigrationView) => boolean, among = active) => among.filter(test).length
        for (const one of begins) {
          expect(count(other => slotOf(other) === slotOf(one))).toBe(1)
          expect(count(other => setOf(other) === setOf(one))).toBeLessThanOrEqual(budgets.perSet)
          expect(count(other => other.namespace === one.namespace)).toBeLessThanOrEqual(budgets.perNamespace)
          expect(count(other => sourceOf(other)?.node === sourceOf(one)?.node)).toBeLessThanOrEqual(
            budgets.perNode,
          )
          expect(active.length).toBeLessThanOrEqual(budgets.total)
        }
        for (const one of views) {
          if (active.includes(one)) continue
          const isBlocked =
            active.length >= budgets.total ||
            count(other => slotOf(other) === slotOf(one)) > 0 ||
            count(other => setOf(other) === setOf(one)) >= budgets.perSet ||
            count(other => other.namespace === one.namespace) >= budgets.perNamespace ||
            count(other => sourceOf(other)?.node === sourceOf(one)?.node) >= budgets.perNode
          expect(isBlocked, 'one waits for nothing').toBe(true)
        }
      }),
    )
  })
})

describe('finished Migrations', () => {
  const ended = (i: number, over: Partial<MigrationView> & { readonly spec?: Partial<MigrationSpec> } = {}) =>
    view(passed(), 'Succeeded', {
      ...{ name: `m${i}`, uid: `m${i}` },
      status: {
        ...{ phase: 'Succeeded', source: held().source },
        phaseTimes: [{ phase: 'Succeeded', at: ago(60_000 - i) }],
      },
      ...over,
    })
  const deleted = (views: readonly MigrationView[]) => decide(views, now).deletions.map(({ name }) => name)

  it('stay until five later ones of their set have ended', () => {
    const views = Array.from({ length: mostKept + 2 }, (_, i) => ended(i))
    expect(deleted(views).sort()).toEqual(['m0', 'm1'])
    expect(deleted(views.slice(0, mostKept))).toEqual([])
  })

  it('go after ttlSecondsAfterFinished where they have one', () => {
    expect(deleted([ended(0, { spec: { ttlSecondsAfterFinished: 61 } })])).toEqual([])
    expect(decide([ended(0, { spec: { ttlSecondsAfterFinished: 61 } })], now).againAfterMs).toBe(1_000)
    expect(deleted([ended(0, { spec: { ttlSecondsAfterFinished: 60 } })])).toEqual(['m0'])
  })
})
