import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { Action } from '../plan.ts'
import { actionsOf, applied, makePods, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'

/**
 * The algorithm of the paper in numbers: from the present counts (P, H, C) and the wanted ones (p, h, c) to the
 * actions.
 */
function closedForm([P, H, C]: number[], [p, h, c]: number[]) {
  const over = (x: number) => Math.max(0, x)
  const [P_, H_, C_, p_, h_, c_] = [P ?? 0, H ?? 0, C ?? 0, p ?? 0, h ?? 0, c ?? 0]
  const hp = Math.min(over(p_ - P_), H_)
  const cp = Math.min(over(p_ - P_ - hp), C_)
  const H1 = H_ - hp
  const C1 = C_ - cp
  const ch = Math.min(over(h_ - H1), C1)
  const C2 = C1 - ch
  return {
    'hotbackup to primary': hp,
    'coldbackup to primary': cp,
    'create primary': over(p_ - P_ - hp - cp),
    'delete primary': over(P_ - p_),
    'coldbackup to hotbackup': ch,
    'create hotbackup': over(h_ - H1 - ch),
    'delete hotbackup': over(H1 - h_),
    'create coldbackup': over(c_ - C2),
    'delete coldbackup': over(C2 - c_),
  }
}

function counted(actions: readonly Action[]) {
  const counts = closedForm([], [])
  const add = (key: string) => {
    if (!(key in counts)) throw new Error(`unexpected action ${key}`)
    counts[key as keyof typeof counts] += 1
  }
  for (const action of actions) {
    if (action.type === 'create') add(`create ${action.kind}`)
    else if (action.type === 'delete') add(`delete ${action.pod.kind}`)
    else if (action.type === 'convert') add(`${action.pod.kind} to ${action.to}`)
    else throw new Error(`unexpected ${action.type}`)
  }
  return counts
}

const counts = fc.tuple(fc.nat(12), fc.nat(12), fc.nat(12))
const plan = (have: number[], want: number[], seed = 1) => {
  const [p = 0, h = 0, c = 0] = have
  const [replicas = 0, hotBackups = 0, coldBackups = 0] = want
  const s = makeSnapshot({ replicas, hotBackups, coldBackups }, makePods(p, h, c))
  return { s, plan: decide(s, seededRandom(seed)) }
}

describe('closed form', () => {
  it('F15 F18 F19 F20 F21 F22: every plan is what the closed form says, for any numbers', () => {
    fc.assert(
      fc.property(counts, counts, fc.nat(), (have, want, seed) => {
        expect(counted(actionsOf(plan(have, want, seed).plan))).toEqual(closedForm(have, want))
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['create', [0, 0, 0], [2, 2, 2], 'F15'],
    ['traffic up', [2, 2, 2], [3, 3, 3], 'F25'],
    ['traffic down', [3, 3, 3], [1, 1, 1], 'F26'],
    ['primary lost', [0, 1, 1], [1, 1, 1], 'F24'],
    ['burst', [2, 2, 2], [6, 2, 2], 'F17'],
    ['opposite wishes', [3, 1, 0], [1, 3, 1], 'F21'],
    ['primary and hot lost', [1, 1, 2], [2, 2, 2], 'F38'],
    ['all primaries lost', [0, 2, 2], [2, 2, 2], 'F38'],
    ['hot lost', [1, 0, 1], [1, 1, 1], 'F37'],
    ['cold lost', [1, 1, 0], [1, 1, 1], 'F37'],
  ])('%s: %j to %j (%4$s)', (_, have, want) => {
    const { s, plan: first } = plan(have, want)
    expect(counted(actionsOf(first))).toEqual(closedForm(have, want))
    // One pass is enough: the next plan is empty.
    expect(actionsOf(decide(applied(s, first), seededRandom(2)))).toEqual([])
  })

  it('F25: scale up by one of each is one promotion, two conversions and three creations, no deletion', () => {
    expect(counted(actionsOf(plan([2, 2, 2], [3, 3, 3]).plan))).toMatchObject({
      'hotbackup to primary': 1,
      'coldbackup to hotbackup': 2,
      'create coldbackup': 3,
      'delete primary': 0,
      'delete hotbackup': 0,
      'delete coldbackup': 0,
    })
  })
})

describe('invariants', () => {
  it('F23: a tier comes only after the tiers above it, and the plan of a converged set is empty', () => {
    fc.assert(
      fc.property(counts, counts, (have, want) => {
        const { s, plan: first } = plan(have, want)
        const order = first.tiers.map(({ tier }) => ['primaries', 'hotbackups', 'coldbackups'].indexOf(tier))
        expect(order).toEqual([...order].sort((a, b) => a - b))
        expect(decide(applied(s, first), seededRandom(3)).tiers).toEqual([])
      }),
    )
  })

  it('creates a new set and deletes surplus at once, and waits between tiers for everything else', () => {
    const tiers = (have: number[], want: number[], isNew = false) => {
      const { s } = plan(have, want)
      return decide({ ...s, isNew }, seededRandom(1)).tiers.map(({ tier }) => tier)
    }
    expect(tiers([0, 0, 0], [2, 2, 2], true)).toEqual(['together'])
    expect(tiers([3, 3, 3], [1, 1, 1])).toEqual(['together'])
    // Tiers are refilled one after the other: scarce pods go to the primaries first.
    expect(tiers([0, 0, 0], [2, 2, 2])).toEqual(['primaries', 'hotbackups', 'coldbackups'])
    expect(tiers([3, 1, 0], [1, 3, 1])).toEqual(['primaries', 'hotbackups', 'coldbackups'])
    expect(tiers([2, 2, 2], [3, 3, 3])).toEqual(['primaries', 'hotbackups', 'coldbackups'])
  })

  it('gives the same plan for the same pods in any order', () => {
    fc.assert(
      fc.property(counts, counts, fc.nat(), ([p, h, c], [replicas, hotBackups, coldBackups], seed) => {
        const pods = makePods(p, h, c)
        const wish = { replicas, hotBackups, coldBackups }
        expect(decide(makeSnapshot(wish, pods.toReversed()), seededRandom(seed))).toEqual(
          decide(makeSnapshot(wish, pods), seededRandom(seed)),
        )
      }),
    )
  })

  it('gives every primary a slot of its own, the lowest free ones first, with a rising epoch', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(8), { maxLength: 5 }),
        fc.nat(8),
        fc.nat(4),
        (slots, replicas, hot) => {
          const primaries = makePods(slots.length, hot, 0).map((pod, i) =>
            pod.kind === 'primary' ? { ...pod, slot: slots[i], epoch: 7 } : pod,
          )
          const s = makeSnapshot({ replicas, hotBackups: 0, coldBackups: 0 }, primaries)
          const after = applied(s, decide(s, seededRandom(4))).pods
          const taken = after.map(pod => pod.slot)
          expect(new Set(taken).size).toBe(replicas)
          const added = after.filter(
            pod => !primaries.some(old => old.uid === pod.uid && old.slot === pod.slot),
          )
          const free = Array.from({ length: 20 }, (_, slot) => slot).filter(slot => !slots.includes(slot))
          expect(added.map(pod => pod.slot).sort((a = 0, b = 0) => a - b)).toEqual(
            free.slice(0, added.length),
          )
        },
      ),
    )
  })

  it('does nothing while paused', () => {
    fc.assert(
      fc.property(counts, counts, ([p, h, c], [replicas, hotBackups, coldBackups]) => {
        const s = makeSnapshot({ replicas, hotBackups, coldBackups, paused: true }, makePods(p, h, c))
        expect(decide(s, seededRandom(5)).tiers).toEqual([])
      }),
    )
  })

  it('decides for 10 000 pods', () => {
    const { plan: large } = plan([4000, 3000, 3000], [5000, 2500, 2500])
    expect(actionsOf(large).length).toBeGreaterThan(1000)
  })
})
