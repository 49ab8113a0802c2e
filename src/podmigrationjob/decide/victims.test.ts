/** Which pods give way to the replacement of a job. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { text } from '../../../test/unit/deploy/manifests.ts'
import { batch, big, node, nodes, replacement, sized, web } from '../testing/crowds.ts'
import { argsWith, budgetWith, podWith, runningFor, worldOf } from '../testing/worlds.ts'
import { Budgets } from './budgets.ts'
import { Room } from './room.ts'
import { mayGiveWay, victimsFor } from './victims.ts'
import type { NodeRoom, PodFacts, RunningJob } from './world.ts'

const found = (
  pod: PodFacts,
  pods: readonly PodFacts[],
  { over = nodes, args = {}, ...around }: Options = {},
) => {
  const world = worldOf([...pods, pod], { nodes: over, ...around })
  const config = argsWith(args)
  const budgets = new Budgets(world, config)
  for (const { place, disruptionBudgets } of around.running ?? []) budgets.add(place, disruptionBudgets)
  const candidacy = { pod, workload: web.key, family: new Set(['uid-web-0']), world, budgets, args: config }
  const room = new Room(world, new Set([pod.uid]))
  return victimsFor(pod, room, other => mayGiveWay(other, candidacy))
}
type Options = Parameters<typeof worldOf>[1] & {
  readonly over?: readonly NodeRoom[]
  readonly args?: Readonly<Record<string, unknown>>
  readonly running?: readonly RunningJob[]
}
const chosen = (pods: readonly PodFacts[], over: readonly NodeRoom[] = nodes, args = {}, own = {}) => {
  const victims = found(replacement(own), pods, { over, args })
  return victims && { node: victims.node, pods: victims.pods.map(({ name }) => name) }
}

describe('who gives way', () => {
  const a = sized('a', 2, { priority: 1 })
  const b = sized('b', 2)

  it('the least important pods of a lower priority, and no more than needed', () => {
    expect(chosen([a, b])).toEqual({ node: 'full', pods: ['b'] })
    expect(chosen([a, { ...b, priority: 2 }])).toEqual({ node: 'full', pods: ['a'] })
    expect(
      chosen([
        { ...a, priority: 0 },
        { ...b, evictionCost: 5 },
      ]),
    ).toEqual({ node: 'full', pods: ['a'] })
  })

  it.each([
    ['has the same priority', { priority: 9 }],
    ['is critical for the system', { isSystemCritical: true }],
    ['may never be evicted', { evictionCost: 2_147_483_647 }],
    ['has no Deployment that could adopt a replacement', { owner: { type: 'none' } }],
    ['belongs to another tenant', { namespace: 'other' }],
    ['is going already', { isTerminating: true }],
    ['keeps its data on the node', { hasLocalStorage: true }],
    ['is of the workload that gets the replacement', { owner: web }],
    ['is not ready', { isReady: false }],
    ['has volumes, ports or distances that only the scheduler can judge', { isUnjudged: true }],
  ] as const)('no pod that %s', (_, over) => {
    expect(
      chosen([
        { ...a, ...over },
        { ...b, ...over },
      ]),
    ).toBeUndefined()
  })

  it.each(['kube-system', 'understudy-system', 'understudy-agents'])(
    'no pod of %s, which the policies forbid, whatever the configuration says',
    async namespace => {
      const args = { preemptOtherNamespaces: true }
      const there = [a, b].map(pod => ({ ...pod, namespace }))
      expect(chosen(there, nodes, args)).toBeUndefined()
      const policy = await text('deploy/job-preemptions/admission.yaml')
      expect(policy).toContain(namespace.startsWith('kube-') ? "startsWith('kube-')" : `'${namespace}'`)
    },
  )

  it('no pod whose job could not begin now: its budgets, its rollout, another pod that is not ready, another job', () => {
    const both = [a, b]
    const with0 = [budgetWith('pdb', { allowed: 0 })]
    const guarded = both.map(pod => ({ ...pod, disruptionBudgets: ['pdb'] }))
    const pod = replacement()
    expect(found(pod, guarded, { budgets: [budgetWith('pdb')] })?.pods).toEqual([guarded[1]])
    expect(found(pod, guarded, { budgets: with0 })).toBeUndefined()
    expect(found(pod, both, { rolling: [batch.key] })).toBeUndefined()
    expect(found(pod, [...both, sized('ill', 0, { isReady: false })])).toBeUndefined()
    expect(found(pod, both, { running: both.map(runningFor) })).toBeUndefined()
    const other = sized('c', 0, { node: 'spare' })
    const args = { maxMigratingGlobally: 1 }
    expect(found(pod, [...both, other], { args, running: [runningFor(other)] })).toBeUndefined()
    // The pod that the job replaces stays until others have given way: its places are lent.
    const source = podWith('web-0', { owner: web, priority: 9, requests: {} })
    expect(found(pod, [...both, source], { args, running: [runningFor(source)] })?.node).toBe('full')
  })

  it('nobody on a node with a pod from which the template keeps its distance', () => {
    const apart = [{ matchLabels: { app: 'web' } }]
    const near = sized('web-1', 0, { owner: web, labels: { app: 'web' }, priority: 9 })
    expect(chosen([a, b, near], nodes, {}, { apart })).toBeUndefined()
    expect(chosen([a, b, { ...near, namespace: 'other' }], nodes, {}, { apart })?.node).toBe('full')
    expect(chosen([a, b, { ...near, node: 'spare' }], nodes, {}, { apart })?.node).toBe('full')
    const [first, second] = [a, b].map(pod => ({ ...pod, apart, labels: { app: 'web' } }))
    // Nor does a pod give way that could go only to such a node.
    if (first && second) expect(chosen([first, second, { ...near, node: 'spare' }])).toBeUndefined()
  })

  it('pods of other namespaces only if the configuration says so', () => {
    const other = { namespace: 'other' }
    expect(
      chosen(
        [
          { ...a, ...other },
          { ...b, ...other },
        ],
        nodes,
        { preemptOtherNamespaces: true },
      ),
    ).toEqual({
      ...{ node: 'full', pods: ['b'] },
    })
  })

  it('nobody if there is no room elsewhere for the pods that give way', () => {
    expect(chosen([a, b], [node('full', 4, big)])).toBeUndefined()
    expect(chosen([a, b], [node('full', 4, big), node('spare', 1)])).toBeUndefined()
    expect(chosen([a, b, sized('c', 3, { node: 'spare', priority: 9 })])).toBeUndefined()
    // Two pods that give way do not count on the same room.
    const small = [sized('d', 1), sized('e', 1), sized('f', 2, { priority: 9 })]
    expect(chosen(small, [node('full', 4, big), node('spare', 1)])).toBeUndefined()
    expect(chosen(small)?.pods).toEqual(['d', 'e'])
  })

  it('nobody on a node that the replacement could not use in any case', () => {
    expect(chosen([a, b], [node('full', 4), node('spare', 4)])).toBeUndefined()
    expect(
      chosen([a, b], [node('full', 4, { ...big, isSchedulable: false }), node('spare', 4)]),
    ).toBeUndefined()
    const taints = [{ key: 'own', effect: 'NoSchedule' }]
    expect(chosen([a, b], [node('full', 4, { ...big, taints }), node('spare', 4)])).toBeUndefined()
    expect(chosen([a, b], [node('full', 1, big), node('spare', 4)])).toBeUndefined()
  })

  it('the node whose most important victim is the least important, then the one with fewer', () => {
    const two = [node('full', 2, big), node('other', 2, big), node('spare', 8)]
    const here = sized('here', 2, { priority: 3 })
    expect(chosen([here, sized('there', 2, { node: 'other', priority: 2 })], two)?.node).toBe('other')
    const halves = ['x', 'y'].map(name => sized(name, 1, { node: 'other', priority: 3 }))
    expect(chosen([here, ...halves], two)?.node).toBe('full')
  })
})

it('PJ26: in any world each pod that gives way is less important and needed, and has room elsewhere', () => {
  const pods = fc.array(
    fc.record({
      ...{ on: fc.constantFrom('full', 'spare', 'third'), cpu: fc.integer({ min: 1, max: 3 }) },
      ...{ priority: fc.nat(4), namespace: fc.constantFrom('default', 'other'), isBare: fc.boolean() },
    }),
    { maxLength: 12 },
  )
  const all = [node('full', 4, big), node('spare', 6), node('third', 5, big)]
  const size = (name: string) => all.find(each => each.name === name)?.allocatable['cpu'] ?? 0
  fc.assert(
    fc.property(pods, fc.integer({ min: 1, max: 4 }), (drawn, cpu) => {
      const made = drawn.map(({ on, cpu: own, isBare, ...over }, index) =>
        sized(`p${index}`, own, { ...over, node: on, ...(isBare && { owner: { type: 'none' } }) }),
      )
      const pod = replacement({ priority: 3, requests: { cpu, pods: 1 } })
      const victims = found(pod, made, { over: all })
      if (victims === undefined) return
      const used = (name: string, without: readonly PodFacts[] = []) =>
        made
          .filter(other => other.node === name && !without.includes(other))
          .reduce((sum, { requests }) => sum + (requests['cpu'] ?? 0), 0)
      const has = (without: readonly PodFacts[]) => used(victims.node, without) + cpu <= size(victims.node)
      expect(has(victims.pods)).toBe(true)
      for (const each of victims.pods) {
        const { cpu: own = 0 } = each.requests
        expect(has(victims.pods.filter(other => other !== each))).toBe(false)
        expect(each).toMatchObject({ node: victims.node, namespace: 'default', owner: batch })
        expect(each.priority).toBeLessThan(3)
        expect(all.some(({ name }) => name !== victims.node && used(name) + own <= size(name))).toBe(true)
      }
    }),
  )
})
