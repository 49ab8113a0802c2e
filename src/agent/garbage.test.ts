import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// In a process of its own: flags are for a whole process.
test('buffers that nobody has are let go without all garbage being collected', async () => {
  const script = `
    import { constants, PerformanceObserver } from 'node:perf_hooks'
    import { collectBuffers } from ${JSON.stringify(join(import.meta.dirname, 'garbage.ts'))}
    const kinds = { minor: 0, major: 0 }
    new PerformanceObserver(list => {
      for (const { detail } of list.getEntries())
        kinds[detail.kind === constants.NODE_PERFORMANCE_GC_MINOR ? 'minor' : 'major'] += 1
    }).observe({ entryTypes: ['gc'] })
    const onBuffer = collectBuffers()
    let held = 0
    for (let made = 0; made < 2000; made += 1) {
      onBuffer(Buffer.allocUnsafe(512 * 1024).length)
      held = Math.max(held, process.memoryUsage().arrayBuffers)
      if (made % 10 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    console.log(JSON.stringify({ ...kinds, held }))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const { minor, major, held } = JSON.parse(stdout)
  // A gigabyte in all.
  expect(minor).toBeGreaterThanOrEqual(30)
  expect(major).toBeLessThan(5)
  expect(held).toBeLessThan(80e6)
})
