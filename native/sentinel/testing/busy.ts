import { execFileSync } from 'node:child_process'
import { expect, vi } from 'vitest'
import { type Started, statOf } from '../../../init-waker/testing/process.ts'
import { buildSanitized } from './build.ts'
import type { Place } from './network.ts'

/**
 * Time that a transaction takes the kernel, ms. Without preemption nothing else runs on that processor meanwhile, not even a
 * sentinel with real-time priority: with more than a node's timeout, clusters beside this test lost a node.
 */
const kernelMs = 1_200

/** A test that gets no processor in all that time tries again. */
const tries = 8

/**
 * Begins a transaction of nftables in the place that takes the kernel a second. Its output is `begins`, and then `ended`. The
 * transaction and the sentinel have a processor each.
 *
 * @param sentinel its process id
 * @throws Error if each ended before this process could see it
 */
export async function beginTransaction(place: Place, sentinel: number): Promise<Started> {
  execFileSync('taskset', ['-a', '-c', '-p', '1', String(sentinel)])
  const harness = await buildSanitized('harness')
  const outputs: string[] = []
  while (outputs.length < tries) {
    const busy = await place.start(['taskset', '-c', '0', harness, 'tables', String(kernelMs)])
    await look(() => expect(busy.stdout()).toMatch(/^begins\n/))
    // On a busy machine its message waits for the processor, and the transaction of another process could come first.
    const before = kernelTicksOf(busy.pid)
    const isUnderWay = await look(() => {
      const now = kernelTicksOf(busy.pid)
      if (before === undefined || now === undefined || busy.stdout() !== 'begins\n') return false
      expect(now - before).toBeGreaterThan(ticksUntilLocked)
      return true
    })
    if (isUnderWay) return busy
    await busy.exit
    outputs.push(`${busy.stdout()}${busy.stderr()}`)
  }
  throw new Error(`no transaction was seen under way: ${outputs.join(' ')}`)
}

const look = <T>(check: () => T) => vi.waitFor(check, { interval: 10 })

/** Hundredths of a second. The kernel copies the message before it begins the transaction. */
const ticksUntilLocked = 20

/** Time that a process has spent in the kernel, in hundredths of a second; undefined: it has ended. */
const kernelTicksOf = (pid: number): number | undefined => {
  const ticks = statOf(pid)?.[12]
  return ticks === undefined ? undefined : Number(ticks)
}
