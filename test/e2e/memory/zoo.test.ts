import { describe, expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { perform } from '../../../zoo/perform.ts'
import { specimens } from '../../../zoo/specimens.ts'
import { needsNodes } from '../lib/cluster.ts'
import { createWorld } from '../lib/world.ts'

/** Cores are few, so only this many run at a time. */
const together = 4

describe.skipIf(needsNodes())('memory survives, seen by a client', () => {
  for (let first = 0; first < specimens.length; first += together) {
    const group = specimens.slice(first, first + together)
    it(`of ${group.map(({ name }) => name).join(' and ')}: refreshed, failed over, and failed over again`, async () => {
      await using world = await createWorld()
      const results = await Promise.all(
        group.map(specimen => perform({ ...world, pidsOf }, specimen, { refreshes: 3 })),
      )
      for (const { failovers } of results)
        for (const { read, expected, restarts } of failovers) {
          expect(read).toBe(expected)
          expect(restarts).toBe(0)
        }
    })
  }
})
