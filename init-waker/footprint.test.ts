import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { cacheRoot } from '../build/cache.ts'
import { eventually } from '../test/support/eventually.ts'
import { buildWaker } from './build.ts'
import { startGate } from './testing/gate.ts'
import { startHold } from './testing/hold.ts'
import { connect } from './testing/peer.ts'
import { memoryOf, type Started, statusField } from './testing/process.ts'

const isRoot = process.getuid?.() === 0

describe('what a gated or held pod costs', () => {
  let waker: string
  beforeAll(async () => {
    waker = await buildWaker()
  })

  test('the file is at most 100 kB', () => {
    expect(statSync(waker).size).toBeLessThanOrEqual(100_000)
  })

  test.skipIf(!isRoot)(
    `it runs where there is nothing else${isRoot ? '' : ' (needs root for chroot)'}`,
    () => {
      const root = mkdtempSync(join(tmpdir(), 'root-'))
      try {
        copyFileSync(waker, join(root, 'waker'))
        const { status, stdout } = spawnSync('chroot', [root, '/waker', 'version'], { encoding: 'utf8' })
        expect([status, stdout]).toEqual([0, expect.stringMatching(/^waker /)])
      } finally {
        rmSync(root, { recursive: true })
      }
    },
  )

  test('a gate stays below 1 MB resident, also with all its places taken', async () => {
    await using gate = await startGate(waker)
    expect(memoryOf(gate.pid, 'Rss')).toBeLessThan(1_000_000)
    const peers = await Promise.all(Array.from({ length: 128 }, () => connect(gate.port)))
    await Promise.all(peers.map(peer => peer.send('understudy/1 wake ')))
    await eventually(() => expect(connections(gate)).toBe(128))
    expect(memoryOf(gate.pid, 'Rss')).toBeLessThan(1_000_000)
    for (const peer of peers) peer.socket.destroy()
  })

  test('a hold stays below 1 MB resident', async () => {
    await using hold = await startHold(waker, ['true'])
    await hold.order('state')
    expect(memoryOf(hold.pid, 'Rss')).toBeLessThan(1_000_000)
  })

  test('neither of them wakes up by itself', async () => {
    await using gate = await startGate(waker)
    // A waiting probe must not cause wake-ups either.
    await using probed = await startGate(waker, ['--stay'])
    const probe = await connect(probed.port)
    await probe.send('GET /opened HTTP/1.1\r\n\r\n')
    await using hold = await startHold(waker, ['true'])
    await hold.order('state')
    // The last connection is closed, so no deadline is pending.
    await eventually(() => expect([gate, hold, probed].map(connections)).toEqual([0, 0, 1]))
    const counted = () => [gate, hold, probed].map(({ pid }) => statusField(pid, 'voluntary_ctxt_switches'))
    // They may not have gone to sleep yet after what they did last.
    await eventually(async () => {
      const before = counted()
      await new Promise(resolve => setTimeout(resolve, 2000))
      expect(counted()).toEqual(before)
    }, 30_000)
    probe.socket.destroy()
  })

  test('the same sources give the same bytes', async () => {
    const cacheDir = mkdtempSync(join(tmpdir(), 'cache-'))
    try {
      mkdirSync(join(cacheDir, 'native'))
      symlinkSync(join(cacheRoot(), 'debian'), join(cacheDir, 'debian'))
      const again = await buildWaker({ cacheDir })
      expect(again).not.toBe(waker)
      expect(readFileSync(again).equals(readFileSync(waker))).toBe(true)
    } finally {
      rmSync(cacheDir, { recursive: true })
    }
  })
})

/**
 * Counts open connections: 0 to 2 are the standard descriptors, 3 the signals, 4 the listener; far higher
 * ones are inherited.
 */
function connections({ pid }: Started): number {
  return readdirSync(`/proc/${pid}/fd`).filter(name => Number(name) >= 5 && Number(name) < 5 + 128).length
}
