import { expect, test } from 'vitest'
import { netstat } from './listen-drops.ts'

test('counters are found by the names of their line', () => {
  const text =
    'TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 2 3\nIpExt: InNoRoutes\nIpExt: 4\n'
  expect([...netstat(text)]).toEqual([
    ['SyncookiesSent', 1],
    ['ListenOverflows', 2],
    ['ListenDrops', 3],
    ['InNoRoutes', 4],
  ])
})
