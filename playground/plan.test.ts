import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chooseIndex, MAX_CLUSTERS, MAX_NODES, overlaps, parseClusterName, planCluster } from './plan.ts'

const index = fc.integer({ min: 0, max: MAX_CLUSTERS - 1 })
const nodes = fc.integer({ min: 1, max: MAX_NODES })

describe('planCluster', () => {
  test('no two machines share an address, a MAC, a link or a pod network', () => {
    fc.assert(
      fc.property(index, nodes, (i, n) => {
        const plan = planCluster('x', i, n)
        const machines = [plan.controlPlane, ...plan.nodes]
        for (const key of ['address', 'mac', 'link', 'label'] as const) {
          expect(new Set(machines.map(it => it[key])).size).toBe(n + 1)
        }
        expect(machines.map(it => it.address)).not.toContain(plan.host.address)
        const networks = [
          ...plan.nodes.map(it => it.podCidr),
          plan.serviceCidr,
          plan.fakePodCidr,
          ...machines.map(it => it.address),
        ]
        for (const [at, network] of networks.entries()) {
          expect(overlaps(network, plan.network)).toBe(true)
          for (const other of networks.slice(at + 1)) expect(overlaps(network, other)).toBe(false)
        }
        expect(plan.nodes.every(it => overlaps(it.podCidr, plan.podCidr))).toBe(true)
        expect(overlaps(plan.dnsAddress, plan.serviceCidr)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  test('clusters of different index lie in different networks and have different links on the host', () => {
    fc.assert(
      fc.property(index, index, (a, b) => {
        fc.pre(a !== b)
        const [one, two] = [planCluster('x', a, 3), planCluster('x', b, 3)]
        expect(overlaps(one.network, two.network)).toBe(false)
        expect(one.host.link).not.toBe(two.host.link)
      }),
    )
  })

  test('link names fit the 15 characters that the kernel keeps', () => {
    const plan = planCluster('a-name-of-20-letters', MAX_CLUSTERS - 1, MAX_NODES)
    const links = [...plan.nodes.map(it => it.link), plan.host.link, plan.host.peer, plan.bridge]
    expect(Math.max(...links.map(link => link.length))).toBeLessThanOrEqual(15)
  })

  test.each([0, -1, 1.5, MAX_NODES + 1])('%d nodes are refused', n => {
    expect(() => planCluster('x', 0, n)).toThrow(/1 to 60 nodes/)
  })
})

test.each(['', 'A', '1a', 'a-', 'a b', 'a/../b', 'x'.repeat(21)])('"%s" is no cluster name', name => {
  expect(() => parseClusterName(name)).toThrow(/not a valid name for a cluster/)
})

describe('chooseIndex', () => {
  test('takes the lowest one that no other cluster has', () => {
    expect(chooseIndex(new Set(), [])).toBe(0)
    expect(chooseIndex(new Set([0, 1, 3]), [])).toBe(2)
  })

  test('steps over networks that the machine itself uses', () => {
    expect(chooseIndex(new Set(), ['10.128.3.0/24', '192.168.0.0/16'])).toBe(1)
    expect(chooseIndex(new Set([1]), ['10.128.0.0/15', '10.130.7.7/32'])).toBe(3)
  })

  test('says so when all are taken', () => {
    expect(() => chooseIndex(new Set(), ['10.0.0.0/8'])).toThrow(/no free network/)
  })
})

test.each([
  ['10.0.0.0/8', '10.200.1.1', true],
  ['10.1.0.0/16', '10.2.0.0/16', false],
  ['0.0.0.0/0', '1.2.3.4/32', true],
  ['10.128.0.0/16', '10.128.255.255', true],
  ['10.128.0.0/16', '10.129.0.0', false],
])('%s and %s overlap: %s', (a, b, expected) => {
  expect(overlaps(a, b)).toBe(expected)
  expect(overlaps(b, a)).toBe(expected)
})
