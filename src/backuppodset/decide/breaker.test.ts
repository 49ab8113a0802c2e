import { describe, expect, it } from 'vitest'
import type { LastFailover } from '../../api/slot-status.ts'
import { seededRandom } from '../../kube/random.ts'
import { grantStateOf } from '../../slot/decide/grant.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { eventsOf } from '../set-events.ts'
import { statusOf } from '../status.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'
import { actionsOf, makePod, makeSnapshot } from '../testing/snapshots.ts'
import { pausesOf } from './breaker.ts'
import { decide } from './decide.ts'

const plan = (s: Parameters<typeof decide>[0]) => decide(s, seededRandom(1))
const start = Date.parse('2026-01-01T00:00:00Z')

/** Takeovers of slot 0 by p1, p2, … at these seconds, newest first. */
const history = (seconds: readonly number[], over: Partial<LastFailover> = {}): LastFailover[] =>
  seconds
    .map((second, index) => ({
      ...{ slot: 0, from: `p${index}`, to: `p${index + 1}`, reason: 'CrashLoop', seconds: 1 },
      at: new Date(start + second * 1000).toISOString(),
      ...over,
    }))
    .reverse()

describe('R22: primaries that fail one after the other', () => {
  const secondsLeft = (failovers: LastFailover[], second: number) =>
    pausesOf(failovers, start + second * 1000).map(({ until }) => (until - start) / 1000 - second)

  it('are replaced three times, and then after pauses that double', () => {
    expect(secondsLeft(history([0, 10]), 11)).toEqual([])
    expect(secondsLeft(history([0, 10, 20]), 20)).toEqual([10])
    expect(secondsLeft(history([0, 10, 20, 40]), 40)).toEqual([20])
    expect(secondsLeft(history([0, 10, 20, 40, 80, 120, 160, 200, 240, 280, 320]), 320)).toEqual([600])
    expect(secondsLeft(history([0, 10, 20]), 31)).toEqual([])
  })

  it('count only where each had taken over from the one before, and failed of itself soon after that', () => {
    expect(secondsLeft(history([0, 10, 2_000]), 2_000)).toEqual([])
    expect(secondsLeft(history([0, 10, 20], { reason: 'PodDeleted' }), 20)).toEqual([])
    expect(secondsLeft(history([0, 10, 20], { to: 'another' }), 20)).toEqual([])
  })

  it('with memory only where nothing was saved in between: the same memory came back each time', () => {
    const died = { reason: 'Died', how: 'Frozen', generation: 3 } as const
    expect(secondsLeft(history([0, 10, 20], { ...died, stateAge: 2 }), 20)).toEqual([])
    expect(secondsLeft(history([0, 10, 20], { ...died, stateAge: 12 }), 20)).toEqual([10])
  })

  const primary = makePod('p3', 'primary', {
    ...{ slot: 0, epoch: 4, ready: false, crashLooping: true },
    lastEnd: 'container app ended with code 137, OOMKilled',
  })
  const backup = makePod('h', 'hotbackup')
  const failovers = history([0, 10, 20])
  const wish = { replicas: 1, hotBackups: 1, coldBackups: 0 }

  it('are left to their kubelet meanwhile, and looked at when the pause ends', () => {
    const at = (second: number) =>
      makeSnapshot(wish, [primary, backup], { failovers, now: start + second * 1000 })
    expect(actionsOf(plan(at(21)))).toEqual([])
    expect(plan(at(21)).requeueAfterMs).toBe(9_000)
    expect(actionsOf(plan(at(31)))).toMatchObject([
      { type: 'convert', pod: { name: 'h' } },
      { type: 'create' },
    ])
  })

  it('are named in the status, and the event of the takeover says how the app ended', () => {
    const s = makeSnapshot(wish, [primary, backup], { failovers, now: start + 31_000 })
    const [action] = actionsOf(plan(s))
    const notices = action ? eventsOf([{ type: 'done', action, pod: undefined }], 0) : []
    expect(notices[0]?.note).toContain('p3 (CrashLoop: container app ended with code 137, OOMKilled)')
    const { conditions } = statusOf(s.set, undefined, {
      ...{ pods: s.pods, templateHash: 'now', failure: undefined, failovers, now: start + 21_000 },
      ...{ lastTransition: undefined, lastFailover: undefined },
    })
    expect(conditions?.find(({ type }) => type === 'Degraded')).toMatchObject({
      reason: 'ReplacementsPaused',
      message: expect.stringContaining('2026-01-01T00:00:30.000Z'),
    })
  })

  it('a memory that kills its app is not brought back at once; one that was saved since is', () => {
    const dead = makePrimary('p3', 0, { ready: false }, { died: true })
    const h = makeUnderstudy('h')
    const lease = makeLease(dead, { heir: { name: 'h', uid: h.uid, ip: undefined }, holders: ['n-h'] })
    const snapshot = (takenAt: number) =>
      makeMemorySnapshot(
        wish,
        [dead, h],
        [makeSlot(lease, [{ ...makeCopy(lease, h, 'Frozen'), seenAt: takenAt }])],
        {
          failovers: history([0, 10, 20], { reason: 'Died', how: 'Frozen', generation: 3, stateAge: 15 }),
          ...{ now: start + 21_000, monotonicNow: 100_000 },
        },
      )
    expect(actionsOf(plan(snapshot(50_000))).filter(({ type }) => type === 'promote')).toEqual([])
    expect(actionsOf(plan(snapshot(50_000))).filter(({ type }) => type === 'create')).toEqual([])
    expect(actionsOf(plan(snapshot(99_900)))).toContainEqual(expect.objectContaining({ type: 'promote' }))
  })

  it('nor by a grant: an heir with one would not wait for the end of the pause', () => {
    const p3 = makePrimary('p3', 0)
    const h = makeUnderstudy('h')
    const grant = { number: 4, heir: { uid: h.uid, node: 'n-h' }, isRevoked: false }
    const lease = makeLease(p3, { heir: { name: 'h', uid: h.uid, ip: undefined }, holders: ['n-h'], grant })
    const words = new Map()
    const heirState = () => 'Waits' as const
    const grants = grantStateOf(lease, {
      words,
      heirState,
      onPod: () => ({ over: 0, isTold: false }),
      isSourceSilent: false,
    })
    const snapshot = (second: number, takenAt: number) => {
      const s = makeMemorySnapshot(
        wish,
        [p3, h],
        [makeSlot(lease, [{ ...makeCopy(lease, h, 'Frozen'), seenAt: takenAt }], { grants })],
        {
          failovers: history([0, 10, 20], { reason: 'Died', how: 'Frozen', generation: 3, stateAge: 15 }),
          ...{ now: start + second * 1000, monotonicNow: 100_000 },
        },
      )
      return { ...s, ...(s.memory && { memory: { ...s.memory, grantee: 'Heir' as const } }) }
    }
    const written = (second: number, takenAt: number) =>
      actionsOf(plan(snapshot(second, takenAt))).flatMap(each =>
        each.type === 'writeSlot' ? [each.lease.grant] : [],
      )
    expect(written(21, 50_000)).toContainEqual({ ...grant, isRevoked: true })
    expect(written(31, 50_000)).not.toContainEqual({ ...grant, isRevoked: true })
    expect(written(21, 99_900)).not.toContainEqual({ ...grant, isRevoked: true })
  })
})
