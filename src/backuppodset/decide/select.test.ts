import { describe, expect, it } from 'vitest'
import { type StrategyKey, strategies } from '../../api/backuppodset.ts'
import type { PodKind } from '../../api/labels.ts'
import { seededRandom } from '../../kube/random.ts'
import type { PodView } from '../snapshot.ts'
import { actionsOf, makePod, makePods, makeSet, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { policies } from './select.ts'

const [one, two, three] = [
  makePod('one', 'hotbackup', { createdAt: 1, node: 'n1' }),
  makePod('two', 'hotbackup', { createdAt: 2, node: 'n2' }),
  makePod('three', 'hotbackup', { createdAt: 3, node: 'n2' }),
] as const
const random = seededRandom(1)

describe('policies', () => {
  it('F28: random is uniform over the candidates (chi-square of 10 000 draws, 99.9 %)', () => {
    const candidates = Array.from({ length: 10 }, (_, i) => makePod(`h${i}`, 'hotbackup'))
    const draws = new Map<string, number>()
    for (let i = 0; i < 10_000; i += 1) {
      const [pod] = policies.random(candidates, { count: 1, purpose: 'convert', peers: [], random })
      if (pod) draws.set(pod.name, (draws.get(pod.name) ?? 0) + 1)
    }
    const chiSquare = candidates.reduce(
      (sum, { name }) => sum + ((draws.get(name) ?? 0) - 1000) ** 2 / 1000,
      0,
    )
    expect(chiSquare).toBeLessThan(27.88) // 9 degrees of freedom
  })

  it('random is repeatable under a seed', () => {
    const draw = (seed: number) =>
      actionsOf(
        decide(
          makeSnapshot({ replicas: 3, hotBackups: 0, coldBackups: 0 }, makePods(0, 9, 0)),
          seededRandom(seed),
        ),
      )
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).not.toEqual(draw(8))
  })

  it('oldest and newest go by creation time', () => {
    const context = { count: 2, purpose: 'convert', peers: [], random } as const
    expect(policies.oldest([two, one, three], context)).toEqual([one, two])
    expect(policies.newest([two, three, one], context)).toEqual([three, two])
  })

  it('annotated takes whom the model prefers, and leaves the rest to chance', () => {
    const [best, none, worst] = [
      makePod('best', 'hotbackup', { preference: 5 }),
      makePod('none', 'hotbackup'),
      makePod('worst', 'hotbackup', { preference: -1 }),
    ] as const
    const draw = (purpose: 'convert' | 'delete', count: number) =>
      policies.annotated([none, worst, best], { count, purpose, peers: [], random })
    expect(draw('convert', 3)).toEqual([best, none, worst])
    expect(draw('delete', 3)).toEqual([worst, none, best])
    const alike = Array.from({ length: 4 }, (_, i) => makePod(`a${i}`, 'hotbackup'))
    const first = Array.from(
      { length: 100 },
      () => policies.annotated(alike, { count: 1, purpose: 'convert', peers: [], random })[0]?.name,
    )
    expect(new Set(first).size).toBe(4)
  })

  it('spread promotes where fewest primaries are and deletes where most of the kind are', () => {
    const peers = [one, two, three, makePod('p', 'primary', { node: 'n2' })]
    const draw = (purpose: 'convert' | 'delete') =>
      policies.spread([one, two, three], { count: 1, purpose, peers, random })[0]
    expect(draw('convert')).toBe(one)
    expect([two, three]).toContain(draw('delete'))
  })

  it('spread counts each draw for the next one', () => {
    const pods = ['n1', 'n2', 'n3', 'n4'].flatMap(node =>
      Array.from({ length: 6 }, (_, i) => makePod(`${node}-${i}`, 'hotbackup', { node })),
    )
    const peers = [...pods, makePod('p', 'primary', { node: 'n1' })]
    for (const [purpose, want] of [
      ['convert', [3, 3, 3, 2]],
      ['delete', [3, 3, 3, 2]],
    ] as const) {
      const taken = policies.spread(pods, { count: 11, purpose, peers, random })
      const counts = ['n1', 'n2', 'n3', 'n4'].map(node => taken.filter(pod => pod.node === node).length)
      expect(counts.toSorted((a, b) => b - a)).toEqual(want)
      if (purpose === 'convert') expect(counts[0]).toBe(2)
    }
  })

  it('no policy looks at a pod more often than a sort does', () => {
    let looks = 0
    const watched = (pod: PodView): PodView =>
      new Proxy(pod, {
        get(target, property) {
          looks += 1
          return target[property as keyof PodView]
        },
      })
    const pods = Array.from({ length: 10_000 }, (_, i) =>
      watched(makePod(`p${i}`, 'primary', { node: `n${i % 100}`, slot: i, epoch: 1, createdAt: i % 977 })),
    )
    for (const policy of strategies) {
      looks = 0
      const strategy = { ...makeSet().strategy, replicasToUnallocated: policy }
      const wish = { replicas: 5_000, hotBackups: 0, coldBackups: 0, strategy }
      expect(actionsOf(decide(makeSnapshot(wish, pods), random))).toHaveLength(5_000)
      // 10 000 · log2(10 000) comparisons of two pods each, for the sort by name and for the policy's sort, and the
      // rest.
      expect(looks / (pods.length * Math.log2(pods.length))).toBeLessThan(30)
    }
  })

  it('no policy prefers a pod that does not serve to one that does', () => {
    const pods = [
      makePod('a', 'hotbackup', { ready: false, unreadySince: 0, createdAt: 1 }),
      makePod('b', 'hotbackup', { createdAt: 2 }),
    ]
    for (const policy of strategies) {
      const strategy = { ...makeSet().strategy, hotbackupToReplicas: policy, hotbackupToUnallocated: policy }
      const promote = decide(
        makeSnapshot({ strategy, replicas: 1, hotBackups: 1, coldBackups: 0 }, pods),
        random,
      )
      expect(actionsOf(promote)).toMatchObject([{ type: 'convert', pod: { name: 'b' } }])
      const release = decide(
        makeSnapshot({ strategy, replicas: 0, hotBackups: 1, coldBackups: 0 }, pods),
        random,
      )
      expect(actionsOf(release)).toMatchObject([{ type: 'delete', pod: { name: 'a' } }])
    }
  })
})

describe('F27: each strategy key rules its own transition and no other', () => {
  const creations: readonly [StrategyKey, PodKind, boolean][] = [
    ['init', 'primary', true],
    ['init', 'hotbackup', true],
    ['init', 'coldbackup', true],
    ['unallocatedToReplicas', 'primary', false],
    ['unallocatedToHotbackup', 'hotbackup', false],
    ['unallocatedToColdbackup', 'coldbackup', false],
  ]
  it.each(creations)('%s: creation of a %s, new set %s', (key, kind, isNew) => {
    const strategy = { ...makeSet().strategy, [key]: 'spread' as const }
    const wish = { primary: 'replicas', hotbackup: 'hotBackups', coldbackup: 'coldBackups' }[kind]
    const s = makeSnapshot({ replicas: 0, hotBackups: 0, coldBackups: 0, strategy, [wish]: 1 }, [], { isNew })
    expect(actionsOf(decide(s, random))).toMatchObject([{ type: 'create', kind, strategy: 'spread' }])
  })

  const choices: readonly [StrategyKey, number[], number[]][] = [
    ['hotbackupToReplicas', [0, 3, 0], [1, 2, 0]],
    ['coldbackupToReplicas', [0, 0, 3], [1, 0, 2]],
    ['coldbackupToHotbackup', [1, 0, 3], [1, 1, 2]],
    ['replicasToUnallocated', [3, 0, 0], [2, 0, 0]],
    ['hotbackupToUnallocated', [1, 3, 0], [1, 2, 0]],
    ['coldbackupToUnallocated', [1, 0, 3], [1, 0, 2]],
  ]
  it.each(choices)(
    '%s: %j to %j',
    (key, [p = 0, h = 0, c = 0], [replicas = 0, hotBackups = 0, coldBackups = 0]) => {
      const asked: string[] = []
      const spy = (name: keyof typeof policies) => ({
        ...policies,
        [name]: (...args: Parameters<typeof policies.random>) => {
          asked.push(name)
          return policies[name](...args)
        },
      })
      const strategy = { ...makeSet().strategy, [key]: 'newest' as const }
      const s = makeSnapshot({ replicas, hotBackups, coldBackups, strategy }, makePods(p, h, c))
      expect(actionsOf(decide(s, random, spy('newest')))).toHaveLength(1)
      expect(asked).toEqual(['newest'])
      asked.length = 0
      decide(s, random, spy('random'))
      expect(asked).toEqual([])
    },
  )
})
