import { describe, expect, it } from 'vitest'
import { field, memoryOf, pidInPod } from './process.ts'

describe('processes of a node', () => {
  it('reads smaps_rollup in bytes', () => {
    expect(field('Rss:                 812 kB\nPss:                  40 kB\n', 'Pss')).toBe(40_960)
    expect(() => field('Rss: 1 kB', 'Swap')).toThrow('no Swap')
  })

  it('measures a live process', async () => {
    const { rss, pss } = await memoryOf(process.pid)
    expect(rss).toBeGreaterThanOrEqual(pss)
    expect(pss).toBeGreaterThan(0)
  })

  it('finds nothing for a pod that is not here', async () => {
    expect(await pidInPod('00000000-aaaa-bbbb-cccc-000000000000', 'waker')).toBeUndefined()
  })
})
