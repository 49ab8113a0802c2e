// Long because it is a list of situations for one pure function.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actionsOf, applied, makePod, makePods, makeSet, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'

const random = seededRandom(1)
const oneOfEach = { replicas: 1, hotBackups: 1, coldBackups: 1 }
const plan = (s: Snapshot) => decide(s, random)
const unready = { ready: false, unreadySince: 0 }

describe('primaries that fail without going away', () => {
  const withFirst = (pods: PodView[], change: Partial<PodView>) =>
    pods.map((pod, i) => (i === 0 ? { ...pod, ...change } : pod))

  it('replaces one that stays unready, in its slot and with the next epoch, and then deletes it', () => {
    const s = makeSnapshot(oneOfEach, withFirst(makePods(1, 1, 1), { ...unready, epoch: 4 }))
    expect(actionsOf(plan(s))).toMatchObject([
      {
        type: 'convert',
        pod: { name: 'h0' },
        to: 'primary',
        role: { slot: 0, epoch: 5, replaces: { reason: 'Unready', name: 'p0' } },
      },
      { type: 'convert', pod: { name: 'c0' }, to: 'hotbackup' },
      { type: 'create', kind: 'coldbackup' },
    ])
    expect(actionsOf(plan(applied(s, plan(s))))).toMatchObject([
      { type: 'delete', pod: { name: 'p0' }, reason: 'Superseded' },
    ])
  })

  it('waits until unreadySeconds have passed, and asks to be called then', () => {
    const pods = withFirst(makePods(1, 1, 1), { ready: false, unreadySince: 990_000 })
    expect(plan(makeSnapshot(oneOfEach, pods))).toEqual({ tiers: [], requeueAfterMs: 20_000 })
  })

  it('never does so with unreadySeconds 0', () => {
    const failover = { ...makeSet().failover, unreadySeconds: 0, crashLoop: 'Ignore' } as const
    const s = makeSnapshot(
      { ...oneOfEach, failover },
      withFirst(makePods(1, 1, 1), { ...unready, crashLooping: true }),
    )
    expect(plan(s)).toEqual({ tiers: [], requeueAfterMs: undefined })
  })

  it('replaces a crash-looping one at once', () => {
    const pods = withFirst(makePods(1, 1, 1), { ready: false, unreadySince: 999_999, crashLooping: true })
    expect(actionsOf(plan(makeSnapshot(oneOfEach, pods)))[0]).toMatchObject({
      pod: { name: 'h0' },
      role: { replaces: { reason: 'CrashLoop' } },
    })
  })

  it('does not start a chain when no backup is better: all unready, nothing happens', () => {
    const pods = makePods(2, 2, 0).map(pod => ({ ...pod, ...unready }))
    expect(plan(makeSnapshot({ replicas: 2, hotBackups: 2, coldBackups: 0 }, pods)).tiers).toEqual([])
  })

  it('nor by crash loops: an unready hot backup, or a cold one of a template that never served, is no better', () => {
    const crashing = { ...unready, crashLooping: true }
    const hotToo = makePods(1, 1, 1).map(pod => (pod.kind === 'coldbackup' ? pod : { ...pod, ...crashing }))
    expect(plan(makeSnapshot(oneOfEach, hotToo)).tiers).toEqual([])
    const wish = { replicas: 1, hotBackups: 0, coldBackups: 1 }
    const never = makeSnapshot(wish, withFirst(makePods(1, 0, 1), { ...crashing, served: false }))
    expect(plan(never).tiers).toEqual([])
    const served = makeSnapshot(wish, withFirst(makePods(1, 0, 1), crashing))
    expect(actionsOf(plan(served))[0]).toMatchObject({ type: 'convert', pod: { name: 'c0' }, to: 'primary' })
  })

  it('a cold backup that a missing primary takes is not there for a failing one', () => {
    const pods = withFirst(makePods(1, 0, 1), { ...unready, crashLooping: true })
    const s = makeSnapshot({ replicas: 2, hotBackups: 0, coldBackups: 1 }, pods)
    expect(plan(s).tiers[0]?.actions).toMatchObject([
      { type: 'convert', pod: { name: 'c0' }, role: { slot: 1 } },
    ])
  })

  it('a primary that is being woken is not replaced for being unready', () => {
    const waking = { ...unready, gate: 'waiting', waking: true } as const
    const s = makeSnapshot({ ...oneOfEach, coldBackups: 0 }, withFirst(makePods(1, 1, 0), waking))
    expect(plan(s).tiers).toEqual([])
  })

  it('an unready surplus primary is deleted, not replaced', () => {
    const s = makeSnapshot(
      { replicas: 1, hotBackups: 1, coldBackups: 1 },
      withFirst(makePods(2, 1, 1), unready),
    )
    expect(actionsOf(plan(s))).toMatchObject([{ type: 'delete', pod: { name: 'p0' }, reason: 'Surplus' }])
  })
})

describe('slots', () => {
  it('an older epoch of a slot is never readmitted: it is deleted once its successor serves', () => {
    const old = makePod('old', 'primary', { slot: 0, epoch: 1 })
    const young = makePod('young', 'primary', { slot: 0, epoch: 2, ready: false, unreadySince: 999_999 })
    const wish = { replicas: 1, hotBackups: 0, coldBackups: 0 }
    expect(plan(makeSnapshot(wish, [old, young])).tiers).toEqual([])
    expect(
      actionsOf(plan(makeSnapshot(wish, [old, { ...young, ready: true, unreadySince: undefined }]))),
    ).toMatchObject([{ type: 'delete', pod: { name: 'old' }, reason: 'Superseded' }])
  })

  it('two primaries of one slot and epoch are both kept: one gets a slot of its own', () => {
    const twins = ['a', 'b'].map(name => makePod(name, 'primary', { slot: 0, epoch: 1 }))
    const s = makeSnapshot({ replicas: 2, hotBackups: 0, coldBackups: 0 }, twins)
    expect(actionsOf(plan(s))).toMatchObject([
      { type: 'convert', pod: { kind: 'primary' }, to: 'primary', role: { slot: 1 } },
    ])
    expect(plan(applied(s, plan(s))).tiers).toEqual([])
  })
})

describe('gates', () => {
  it('F17: a cold pod is woken before its label moves', () => {
    const s = makeSnapshot({ replicas: 1, hotBackups: 0, coldBackups: 0 }, [makePod('c', 'coldbackup')])
    expect(actionsOf(plan(s))).toMatchObject([{ type: 'convert', to: 'primary', wake: true }])
  })

  it('a cold pod whose gate is spent is converted first, without waking; if nobody needs it, it is replaced', () => {
    const spent = makePod('spent', 'coldbackup', { gate: 'open' })
    const gated = makePod('gated', 'coldbackup')
    const need = makeSnapshot({ replicas: 0, hotBackups: 1, coldBackups: 1 }, [gated, spent])
    expect(actionsOf(plan(need))).toMatchObject([{ type: 'convert', pod: { name: 'spent' }, wake: false }])
    const idle = makeSnapshot({ replicas: 0, hotBackups: 0, coldBackups: 2 }, [gated, spent])
    expect(actionsOf(plan(idle))).toMatchObject([
      { type: 'delete', pod: { name: 'spent' }, reason: 'GateSpent' },
      { type: 'create', kind: 'coldbackup' },
    ])
  })

  it('F23: while a primary is being woken the tiers below wait, and the pod is not woken twice', () => {
    const waking = makePod('c', 'primary', {
      ...unready,
      unreadySince: 999_999,
      gate: 'waiting',
      waking: true,
      slot: 0,
      epoch: 1,
    })
    expect(plan(makeSnapshot(oneOfEach, [waking])).tiers).toEqual([])
  })

  it('a hot backup that is being woken counts as one: its successor at the gate is made meanwhile', () => {
    const primary = makePod('p', 'primary', { slot: 0, epoch: 1 })
    const waking = makePod('c', 'hotbackup', { ...unready, gate: 'waiting', waking: true })
    expect(actionsOf(plan(makeSnapshot(oneOfEach, [primary, waking])))).toMatchObject([
      { type: 'create', kind: 'coldbackup' },
    ])
  })

  it('a converted pod that stands at its gate again is woken again', () => {
    const pod = makePod('p', 'primary', {
      ready: false,
      unreadySince: 999_999,
      gate: 'waiting',
      slot: 0,
      epoch: 1,
    })
    const s = makeSnapshot({ replicas: 1, hotBackups: 0, coldBackups: 0 }, [pod])
    expect(actionsOf(plan(s))).toMatchObject([{ type: 'wake', pod: { name: 'p' } }])
  })
})

describe('surplus beside gates', () => {
  const wish = { replicas: 1, hotBackups: 0, coldBackups: 0 }
  const serving = makePod('serving', 'primary', { slot: 0, epoch: 1 })
  const atGate = makePod('at-gate', 'primary', {
    ...unready,
    unreadySince: 999_999,
    gate: 'waiting',
    slot: 1,
    epoch: 1,
  })

  it('a primary whose wake-up is under way is the surplus, not the one that serves', () => {
    const s = makeSnapshot(wish, [serving, { ...atGate, waking: true }])
    expect(plan(s).tiers).toEqual([])
  })

  it('a primary back at its gate goes before one that serves, and is not woken for that', () => {
    expect(actionsOf(plan(makeSnapshot(wish, [serving, atGate])))).toMatchObject([
      { type: 'delete', pod: { name: 'at-gate' }, reason: 'Surplus' },
    ])
  })

  it('a pod without a gate that was labelled a cold backup is none', () => {
    const fake = makePod('fake', 'coldbackup', { gate: 'none', ready: true, unreadySince: undefined })
    const s = makeSnapshot({ replicas: 0, hotBackups: 0, coldBackups: 1 }, [fake])
    expect(actionsOf(plan(s))).toMatchObject([
      { type: 'delete', pod: { name: 'fake' }, reason: 'GateSpent' },
      { type: 'create', kind: 'coldbackup' },
    ])
  })
})

describe('ownership', () => {
  it('adopts orphans, lets strays go and clears finished pods, before it counts', () => {
    const orphan = makePod('orphan', 'hotbackup')
    const s = makeSnapshot(oneOfEach, [...makePods(1, 0, 1), orphan], {
      orphans: [orphan],
      strays: [{ name: 'stray', uid: 's', resourceVersion: '1' }],
      finished: [makePod('ended', 'primary')],
    })
    expect(actionsOf(plan(s))).toMatchObject([
      { type: 'adopt', pod: { name: 'orphan' } },
      { type: 'release', pod: { name: 'stray' } },
      { type: 'delete', pod: { name: 'ended' }, reason: 'Finished' },
    ])
  })
})

describe('rollout', () => {
  /** Runs passes until nothing changes, and reports each state between them. */
  const roll = (wish: { replicas: number; hotBackups: number; coldBackups: number }, start: PodView[]) => {
    let s = makeSnapshot(wish, start)
    const states = [s]
    for (let pass = 0; ; pass += 1) {
      const next = plan(s)
      if (next.tiers.length === 0) return states
      if (pass > 200) throw new Error('does not come to an end')
      s = applied(s, next)
      states.push(s)
    }
  }
  const old = (pods: PodView[]) => pods.map(pod => ({ ...pod, templateHash: 'before' }))
  const count = (s: Snapshot, kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind).length

  it('ends with every pod new, at most one primary more than wished and never one less', () => {
    fc.assert(
      fc.property(fc.nat(4), fc.nat(3), fc.nat(3), (replicas, hotBackups, coldBackups) => {
        const states = roll(
          { replicas, hotBackups, coldBackups },
          old(makePods(replicas, hotBackups, coldBackups)),
        )
        for (const s of states) {
          expect(count(s, 'primary')).toBeGreaterThanOrEqual(replicas)
          expect(count(s, 'primary')).toBeLessThanOrEqual(replicas + 1)
          expect(count(s, 'hotbackup')).toBeGreaterThanOrEqual(hotBackups - 1)
          expect(count(s, 'coldbackup')).toBeGreaterThanOrEqual(coldBackups - 1)
        }
        const end = states.at(-1)
        expect(end?.pods.every(pod => pod.templateHash === 'now')).toBe(true)
        expect(end && [count(end, 'primary'), count(end, 'hotbackup'), count(end, 'coldbackup')]).toEqual([
          replicas,
          hotBackups,
          coldBackups,
        ])
      }),
    )
  })

  it('rolls cold, then hot, then primaries by promotion', () => {
    const states = roll(oneOfEach, old(makePods(1, 1, 1)))
    const firstNew = (kind: PodView['kind']) =>
      states.findIndex(s => s.pods.some(pod => pod.kind === kind && pod.templateHash === 'now'))
    expect(firstNew('coldbackup')).toBeLessThan(firstNew('hotbackup'))
    expect(firstNew('hotbackup')).toBeLessThan(firstNew('primary'))
    expect(states.at(-1)?.pods.find(pod => pod.kind === 'primary')).toMatchObject({ slot: 0, epoch: 2 })
  })

  it('waits for what it has made, so a template that never becomes ready stops after one hot backup', () => {
    const pods = [...old(makePods(2, 2, 0)), makePod('broken', 'hotbackup', unready)].filter(
      ({ name }) => name !== 'h1',
    )
    expect(plan(makeSnapshot({ replicas: 2, hotBackups: 2, coldBackups: 0 }, pods)).tiers).toEqual([])
  })

  it('takes a broken template back: old pods that do not serve go at once', () => {
    const pods = [...makePods(2, 1, 0), makePod('broken', 'hotbackup', { ...unready, templateHash: 'bad' })]
    expect(actionsOf(plan(makeSnapshot({ replicas: 2, hotBackups: 2, coldBackups: 0 }, pods)))).toMatchObject(
      [{ type: 'delete', pod: { name: 'broken' }, reason: 'Outdated' }],
    )
  })

  it('without backups, too: a successor of a template taken back gets one itself, and nothing old is readmitted', () => {
    const serving = makePod('serving', 'primary', { slot: 0, epoch: 1 })
    const broken = makePod('broken', 'primary', {
      ...unready,
      unreadySince: 999_999,
      slot: 0,
      epoch: 2,
      templateHash: 'bad',
    })
    const wish = { replicas: 1, hotBackups: 0, coldBackups: 0 }
    const s = makeSnapshot(wish, [serving, broken])
    expect(actionsOf(plan(s))).toMatchObject([
      { type: 'create', kind: 'primary', role: { slot: 0, epoch: 3 } },
    ])
    const then = actionsOf(plan(applied(s, plan(s))))
    expect(then.map(action => action.type === 'delete' && action.pod.name).sort()).toEqual([
      'broken',
      'serving',
    ])
  })

  it('changes nothing under OnDelete', () => {
    const s = makeSnapshot({ ...oneOfEach, updateStrategy: 'OnDelete' }, old(makePods(1, 1, 1)))
    expect(plan(s).tiers).toEqual([])
  })
})

it('F09: names are <set>-<12 hex>, without collisions', () => {
  const s = makeSnapshot({ replicas: 500, hotBackups: 0, coldBackups: 0 }, [])
  const names = actionsOf(plan(s)).map(action => (action.type === 'create' ? action.name : ''))
  expect(new Set(names).size).toBe(500)
  for (const name of names) expect(name).toMatch(/^bps-[0-9a-f]{12}$/)
})
