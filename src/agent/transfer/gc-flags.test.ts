import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Collections for a gigabyte: about 32 of young garbage and 2 to 6 of all; without the flags 0 and 22 to 30. */
const [fewestMinor, mostMajor] = [16, 13]

// In a process of its own, because flags apply to a whole process.
test('buffers that nobody has are let go without all garbage being collected', async () => {
  const script = `
    import { constants, PerformanceObserver } from 'node:perf_hooks'
    import { collectBuffers } from ${JSON.stringify(join(import.meta.dirname, 'gc-flags.ts'))}
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
    // What was observed is told later, on a busy machine much later.
    const wait = () => new Promise(resolve => setTimeout(resolve, 10))
    for (let waits = 0; kinds.minor < ${fewestMinor} && waits < 300; waits += 1) await wait()
    console.log(JSON.stringify({ ...kinds, held }))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const { minor, major, held } = JSON.parse(stdout)
  expect(minor).toBeGreaterThanOrEqual(fewestMinor)
  expect(major).toBeLessThan(mostMajor)
  // 55 to 90 MB; without the flags 85 to 170.
  expect(held).toBeLessThan(120e6)
})

test('after a burst, buffers and objects that have grown old are let go, and their pages, too', async () => {
  const script = `
    import { collectBuffers } from ${JSON.stringify(join(import.meta.dirname, 'gc-flags.ts'))}
    // Longer than any pause within the burst: a collection in its midst would be the only one.
    const onBuffer = collectBuffers(3_000)
    let old = []
    for (let made = 0; made < 200; made += 1) {
      const buffer = Buffer.allocUnsafe(512 * 1024)
      onBuffer(buffer.length)
      old.push(buffer, Array.from({ length: 5_000 }, (_, at) => ({ at, text: 'text' + at })))
      await new Promise(resolve => setImmediate(resolve))
    }
    const before = process.memoryUsage()
    old = undefined
    const wait = () => new Promise(resolve => setTimeout(resolve, 50))
    for (let waits = 0; process.memoryUsage().heapTotal > before.heapTotal / 4 && waits < 400; waits += 1) await wait()
    console.log(JSON.stringify({ before, after: process.memoryUsage() }))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const { before, after } = JSON.parse(stdout)
  expect(before.arrayBuffers).toBeGreaterThan(100e6)
  expect(after.arrayBuffers).toBeLessThan(before.arrayBuffers / 4)
  expect(after.heapTotal).toBeLessThan(before.heapTotal / 4)
})
