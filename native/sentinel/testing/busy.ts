import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import type { Started } from '../../../init-waker/testing/process.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { buildSanitized } from './build.ts'
import type { Place } from './network.ts'

/**
 * Begins a transaction of nftables in the place that takes the kernel seconds. Its output is `begins`, and then `ended`. A kernel
 * without preemption leaves the processor to nothing else meanwhile, so the transaction and the sentinel have one each.
 *
 * @param sentinel its process id
 */
export async function beginTransaction(place: Place, sentinel: number): Promise<Started> {
  execFileSync('taskset', ['-a', '-c', '-p', '1', String(sentinel)])
  const harness = await buildSanitized('harness')
  const busy = await place.start(['taskset', '-c', '0', harness, 'tables', '2000000'])
  await eventually(() => expect(busy.stdout()).toBe('begins\n'))
  // On a busy machine its message waits for the processor, and the transaction of another process could come first.
  const before = kernelTicksOf(busy.pid)
  await eventually(() => expect(kernelTicksOf(busy.pid) - before).toBeGreaterThan(ticksUntilLocked))
  return busy
}

/** Hundredths of a second. The kernel copies the message before it begins the transaction. */
const ticksUntilLocked = 100

/** Time that a process has spent in the kernel, in hundredths of a second. */
const kernelTicksOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[12])
