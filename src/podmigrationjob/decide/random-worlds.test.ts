import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { viewWith } from '../testing/views.ts'
import { argsWith, budgetWith, podWith, runningFor, waitingFor, worldOf } from '../testing/worlds.ts'
import { arbitrate } from './arbitrate.ts'
import { decide } from './next.ts'
import { threshold } from './threshold.ts'
import { type PodFacts, qosClasses } from './world.ts'

/** Random worlds: some nodes, namespaces and workloads, with pods in every state, jobs for many of them, and limits. */
const scenarios = fc
  .record({
    pods: fc.array(
      fc.record({
        ...{
          node: fc.nat(2),
          namespace: fc.nat(1),
          workload: fc.nat(3),
          qos: fc.constantFrom(...qosClasses),
        },
        ...{
          isReady: fc.boolean(),
          isTerminating: fc.boolean(),
          priority: fc.nat(2),
          cost: fc.integer({ min: -1, max: 1 }),
        },
        ...{ job: fc.constantFrom('none', 'waiting', 'waiting', 'running', 'both'), hasBudget: fc.boolean() },
        mode: fc.constantFrom('EvictDirectly', 'Live', 'ReservationFirst'),
      }),
      { maxLength: 40 },
    ),
    args: fc.record({
      ...{
        maxMigratingGlobally: fc.nat(6),
        maxMigratingPerNode: fc.nat(3),
        maxMigratingPerNamespace: fc.nat(4),
      },
      maxMigratingPerWorkload: fc.option(fc.constantFrom(0, 1, 3, '10%', '50%'), { nil: undefined }),
      maxUnavailablePerWorkload: fc.option(fc.constantFrom(0, 1, 3, '10%', '50%'), { nil: undefined }),
      ...{ rounding: fc.constantFrom('Up', 'Down'), sortOrder: fc.constantFrom('Design', 'Koordinator') },
    }),
    ...{
      allowed: fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
      extra: fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
    },
    seed: fc.integer(),
  })
  .map(({ pods: given, args, allowed, extra, seed }) => {
    const pods = given.map(
      ({ node, namespace, workload, cost, hasBudget, job: _, mode: __, ...pod }, index) => {
        const key = `Deployment/ns${namespace}/w${workload}`
        return podWith(`p${index}`, {
          ...pod,
          ...{ node: `n${node}`, namespace: `ns${namespace}`, evictionCost: cost },
          owner: { type: 'workload', key, kind: 'Deployment' },
          disruptionBudgets: hasBudget ? [`b${workload}`] : [],
        })
      },
    )
    const counts = new Map<string, number>()
    for (const { owner } of pods)
      if (owner.type === 'workload') counts.set(owner.key, (counts.get(owner.key) ?? 0) + 1)
    const desired = Object.fromEntries(
      [...counts].map(([key, count]) => [key, count + (extra[Number(key.slice(-1))] ?? 0)]),
    )
    const budgets = allowed.map((each, index) =>
      budgetWith(`b${index}`, { allowed: each, currentHealthy: 0 }),
    )
    const ofKind = (kinds: readonly string[]) =>
      pods.filter((_, index) => kinds.includes(given[index]?.job ?? ''))
    const waiting = ofKind(['waiting', 'both']).map(pod =>
      waitingFor(pod, { mode: given[pods.indexOf(pod)]?.mode ?? 'Live' }),
    )
    const running = ofKind(['running', 'both']).map(runningFor)
    return {
      pods,
      waiting,
      running,
      world: worldOf(pods, { desired, budgets }),
      args: argsWith({ ...args }),
      seed,
    }
  })

describe('PJ20: in 1,000 random worlds', () => {
  it('no budget is broken by an admitted job: counted anew from the result', () => {
    fc.assert(
      fc.property(scenarios, ({ pods, waiting, running, world, args }) => {
        const { admitted } = arbitrate({ waiting, running }, world, args)
        const before = new Set(running.map(({ place }) => place.uid))
        const begun = new Set(admitted.map(({ pod }) => pod.uid))
        const under = pods.filter(({ uid }) => before.has(uid) || begun.has(uid))
        const news = pods.filter(({ uid }) => begun.has(uid))
        expect(news.some(({ uid }) => before.has(uid))).toBe(false)
        const count = (of: (pod: PodFacts) => unknown, pod: PodFacts) =>
          under.filter(each => of(each) === of(pod)).length
        for (const pod of news) {
          const {
            maxMigratingGlobally: all,
            maxMigratingPerNode: ofNode,
            maxMigratingPerNamespace: ofNamespace,
          } = args
          if (all !== undefined) expect(under.length).toBeLessThanOrEqual(all)
          if (ofNode !== undefined) expect(count(({ node }) => node, pod)).toBeLessThanOrEqual(ofNode)
          if (ofNamespace !== undefined)
            expect(count(({ namespace }) => namespace, pod)).toBeLessThanOrEqual(ofNamespace)
          const key = keyOf(pod)
          const desired = world.workloads.get(key)?.desired ?? 0
          const most = threshold(desired, args.maxMigratingPerWorkload, args.rounding)
          expect(count(keyOf, pod)).toBeLessThanOrEqual(most)
          if (admitted.find(({ pod: { uid } }) => uid === pod.uid)?.mode === 'Live') continue
          if (pod.disruptionBudgets.length > 0) continue
          // A moved pod keeps serving, so only pods that go count; those of other modes that are under way are the judge here. A pod
          // that is admitted later, according to its disruption budget, is none.
          const live = new Set(admitted.filter(({ mode }) => mode === 'Live').map(({ pod: { uid } }) => uid))
          const until = admitted.findIndex(({ pod: { uid } }) => uid === pod.uid)
          const sofar = new Set(admitted.slice(0, until + 1).map(({ pod: { uid } }) => uid))
          const away = pods.filter(each => keyOf(each) === key && !live.has(each.uid))
          const bad = away.filter(
            each => !each.isReady || each.isTerminating || before.has(each.uid) || sofar.has(each.uid),
          )
          expect(bad.length).toBeLessThanOrEqual(
            threshold(desired, args.maxUnavailablePerWorkload, args.rounding),
          )
        }
        for (const [name, { allowed }] of world.disruptionBudgets) {
          const takes = ({ disruptionBudgets, isReady, isTerminating }: PodFacts) =>
            disruptionBudgets.includes(name) && isReady && !isTerminating
          const evicted = admitted.filter(
            ({ mode, pod: { uid } }) => mode !== 'Live' && news.some(pod => pod.uid === uid && takes(pod)),
          )
          const earlier = pods.filter(pod => before.has(pod.uid) && takes(pod)).length
          if (evicted.length > 0) expect(evicted.length + earlier).toBeLessThanOrEqual(allowed)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('no budget is broken over several passes, although the first one does not know nodes and workloads yet', () => {
    fc.assert(
      fc.property(scenarios, ({ pods, waiting, world, args, seed }) => {
        const early = pods.map((pod, index) => ({
          ...pod,
          ...((seed >> (index % 8)) % 2 === 0 && { node: undefined }),
          ...((seed >> (index % 7)) % 2 === 0 && {
            owner: { type: 'unknown', name: 'ReplicaSet x' } as const,
          }),
        }))
        const byKey = new Map(waiting.map(job => [job.key, job]))
        let statuses = new Map<string, PodMigrationJobStatus>()
        for (const seen of [early, pods, pods, pods]) {
          const views = [...byKey].flatMap(
            ([
              key,
              {
                pod: { name, namespace, uid },
                mode,
              },
            ]) => {
              const pod = seen.find(each => each.uid === uid)
              const spec = { mode, podRef: { namespace, name } }
              return [viewWith(spec, { key, name: key, uid: key, pod, status: statuses.get(key) ?? {} })]
            },
          )
          const inWorld = { ...world, pods: new Map(seen.map(pod => [`${pod.namespace}/${pod.name}`, pod])) }
          const config = { ok: true, args } as const
          const plan = decide(views, { world: inWorld, config, now: 0, tokens: Number.POSITIVE_INFINITY })
          statuses = new Map([
            ...statuses,
            ...plan.statuses.map(({ view, status }) => [view.key, status] as const),
          ])
          const isUnder = ({ uid }: PodFacts) =>
            waiting.some(job => job.pod.uid === uid && statuses.get(job.key)?.phase === 'Running')
          if (seen === early) continue
          const under = pods.filter(
            pod =>
              isUnder(pod) && !early.some(({ uid, owner }) => uid === pod.uid && owner.type === 'workload'),
          )
          for (const pod of under) {
            const of = (key: (pod: PodFacts) => unknown) =>
              under.filter(each => key(each) === key(pod)).length
            const { maxMigratingPerNode: ofNode, maxMigratingPerWorkload, rounding } = args
            if (ofNode !== undefined) expect(of(({ node }) => node)).toBeLessThanOrEqual(ofNode)
            const desired = world.workloads.get(keyOf(pod))?.desired ?? 0
            expect(of(keyOf)).toBeLessThanOrEqual(threshold(desired, maxMigratingPerWorkload, rounding))
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it('the same jobs in another order get the same verdicts, and every job gets one', () => {
    fc.assert(
      fc.property(scenarios, ({ waiting, running, world, args, seed }) => {
        const { verdicts, admitted } = arbitrate({ waiting, running }, world, args)
        expect(new Set(verdicts.keys())).toEqual(new Set(waiting.map(({ key }) => key)))
        const [shuffled = []] = fc.sample(fc.shuffledSubarray([...waiting], { minLength: waiting.length }), {
          seed,
          numRuns: 1,
        })
        const again = arbitrate({ waiting: shuffled, running: [...running].reverse() }, world, args)
        expect(again.admitted.map(({ key }) => key)).toEqual(admitted.map(({ key }) => key))
        expect(new Map([...again.verdicts].sort())).toEqual(new Map([...verdicts].sort()))
      }),
      { numRuns: 300 },
    )
  })

  it('no job waits for a budget that has a place for it: one more pass with the same world admits none', () => {
    fc.assert(
      fc.property(scenarios, ({ pods, waiting, running, world, args }) => {
        const { admitted, verdicts } = arbitrate({ waiting, running }, world, args)
        const live = new Set(admitted.filter(({ mode }) => mode === 'Live').map(({ pod: { uid } }) => uid))
        const begun = pods
          .filter(({ uid }) => admitted.some(({ pod }) => pod.uid === uid))
          .map(pod => ({ ...runningFor(pod), ...(live.has(pod.uid) && { disruptionBudgets: [] }) }))
        const rest = waiting.filter(({ key }) => verdicts.get(key)?.type === 'waits')
        expect(arbitrate({ waiting: rest, running: [...running, ...begun] }, world, args).admitted).toEqual(
          [],
        )
      }),
      { numRuns: 300 },
    )
  })
})

const keyOf = ({ owner }: PodFacts): string => (owner.type === 'workload' ? owner.key : '')
