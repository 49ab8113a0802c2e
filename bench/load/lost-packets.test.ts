import { expect, test } from 'vitest'
import { grown, networks, pairs, sums } from './lost-packets.ts'

test('counters are found by the names of their line', () => {
  const text =
    'TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 2 3\nIpExt: InNoRoutes\nIpExt: 4\n'
  expect([...pairs(text)]).toEqual([
    ['TcpExt.SyncookiesSent', 1],
    ['TcpExt.ListenOverflows', 2],
    ['TcpExt.ListenDrops', 3],
    ['IpExt.InNoRoutes', 4],
  ])
  expect([...sums('conntrack', 'entries  drop\n00000010 0000000a\n00000020 00000001\n')]).toEqual([
    ['conntrack.entries', 48],
    ['conntrack.drop', 11],
  ])
})

test('only counters of lost packets that have grown are listed', () => {
  const before = new Map([
    ['TcpExt.ListenDrops', 1],
    ['Ip.InReceives', 1],
    ['Ip.OutDiscards', 2],
  ])
  const after = new Map([
    ['TcpExt.ListenDrops', 4],
    ['Ip.InReceives', 9],
    ['Ip.OutDiscards', 2],
    ['conntrack.drop', 1],
  ])
  expect(grown(before, after)).toEqual(['TcpExt.ListenDrops 3', 'conntrack.drop 1'])
})

test('the network of a process is found with its programs', async () => {
  const own = (await networks()).find(({ pids }) => pids.includes(process.pid))
  expect(own?.programs.length).toBeGreaterThan(0)
  expect(own?.pid).toBeLessThanOrEqual(process.pid)
})
