import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import type { Elsewhere } from '../observe/elsewhere.ts'
import { lease } from '../testing/fake/snapshots.ts'
import { untilTold } from './until-told.ts'

describe('D16.last-save: a called pod whose Lease asks for newer memory than its node has', () => {
  const asking = lease({ epoch: 2, atLeast: { epoch: 1, generation: 9, takenAt: 9_000 } })
  const told = (generation: number): Elsewhere => ({
    ...{ address: 'a:9443', fingerprint: 'f', epoch: 1, generation, takenAt: generation * 1_000 },
  })
  /** @param reports what other nodes report, and from which ms on. */
  const waits = async (of: typeof asking, reports: readonly (readonly [number, Elsewhere])[]) => {
    const clock = createFakeClock()
    const began = clock.monotonic()
    const elsewhere = () =>
      reports.flatMap(([from, each]) => (from <= clock.monotonic() - began ? [each] : [])).toReversed()
    const result = untilTold({ elsewhere, clock }, of, undefined, new AbortController().signal)
    const ended = result.then(found => ({ found, ms: clock.monotonic() - began }))
    await clock.advance(2_000)
    return await ended
  }

  it('waits for the report that says where it is', async () => {
    const { found, ms } = await waits(asking, [
      [0, told(6)],
      [100, told(9)],
    ])
    expect(found[0]).toMatchObject({ generation: 9 })
    expect(ms).toBe(100)
  })

  it('but not for long, and not if nothing is missing', async () => {
    expect((await waits(asking, [[0, told(6)]])).ms).toBeLessThan(1_100)
    expect((await waits(asking, [[0, told(9)]])).ms).toBe(0)
    expect((await waits(lease({ epoch: 2 }), [])).ms).toBe(0)
  })
})
