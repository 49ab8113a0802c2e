import { execFileSync } from 'node:child_process'
import { expect } from 'vitest'
import { type Started, statOf } from '../../../init-waker/testing/process.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { buildSanitized } from './build.ts'
import type { Place } from './network.ts'

/** The first takes the kernel about 3 s. A test that gets no processor in all that time tries a longer one. */
const elements = [2_000_000, 4_000_000, 8_000_000]

/**
 * Begins a transaction of nftables in the place that takes the kernel seconds. Its output is `begins`, and then `ended`. A kernel
 * without preemption leaves the processor to nothing else meanwhile, so the transaction and the sentinel have one each.
 *
 * @param sentinel its process id
 * @throws Error if each ended before this process could see it
 */
export async function beginTransaction(place: Place, sentinel: number): Promise<Started> {
  execFileSync('taskset', ['-a', '-c', '-p', '1', String(sentinel)])
  const harness = await buildSanitized('harness')
  const outputs: string[] = []
  for (const count of elements) {
    const busy = await place.start(['taskset', '-c', '0', harness, 'tables', String(count)])
    await eventually(() => expect(busy.stdout()).toMatch(/^begins\n/))
    // On a busy machine its message waits for the processor, and the transaction of another process could come first.
    const before = kernelTicksOf(busy.pid)
    const isUnderWay = await eventually(() => {
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

/** Hundredths of a second. The kernel copies the message before it begins the transaction. */
const ticksUntilLocked = 100

/** Time that a process has spent in the kernel, in hundredths of a second; undefined: it has ended. */
const kernelTicksOf = (pid: number): number | undefined => {
  const ticks = statOf(pid)?.[12]
  return ticks === undefined ? undefined : Number(ticks)
}
