/** Which pods give way to the replacement of a job. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batch, big, node, nodes, replacement, sized } from '../testing/crowds.ts'
import { argsWith, worldOf } from '../testing/worlds.ts'
import { victimsFor } from './victims.ts'
import type { NodeRoom, PodFacts } from './world.ts'

const chosen = (pods: readonly PodFacts[], over: readonly NodeRoom[] = nodes, args = {}, own = {}) => {
  const pod = replacement(own)
  const found = victimsFor(pod, worldOf([...pods, pod], { nodes: over }), argsWith(args))
  return found && { node: found.node, pods: found.pods.map(({ name }) => name) }
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
  ] as const)('no pod that %s', (_, over) => {
    expect(
      chosen([
        { ...a, ...over },
        { ...b, ...over },
      ]),
    ).toBeUndefined()
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
      const found = victimsFor(pod, worldOf([...made, pod], { nodes: all }), argsWith())
      if (found === undefined) return
      const used = (name: string, without: readonly PodFacts[] = []) =>
        made
          .filter(other => other.node === name && !without.includes(other))
          .reduce((sum, { requests }) => sum + (requests['cpu'] ?? 0), 0)
      const has = (without: readonly PodFacts[]) => used(found.node, without) + cpu <= size(found.node)
      expect(has(found.pods)).toBe(true)
      for (const each of found.pods) {
        const { cpu: own = 0 } = each.requests
        expect(has(found.pods.filter(other => other !== each))).toBe(false)
        expect(each).toMatchObject({ node: found.node, namespace: 'default', owner: batch })
        expect(each.priority).toBeLessThan(3)
        expect(all.some(({ name }) => name !== found.node && used(name) + own <= size(name))).toBe(true)
      }
    }),
  )
})
