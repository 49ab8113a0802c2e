import { expect, it } from 'vitest'
import { parsePressure, startPressure } from './machine.ts'

it('reads how long somebody waited for a processor', () => {
  const text =
    'some avg10=84.48 avg60=86.63 avg300=67.36 total=1828195758\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n'
  expect(parsePressure(text)).toBe(1_828_195_758)
  expect(() => parsePressure('')).toThrow('not a pressure file')
})

it('tells a share of the time', async () => {
  const waited = [1_000_000, 1_500_000]
  const clock = [10_000, 12_000]
  const end = await startPressure(
    async () => waited.shift(),
    () => clock.shift() ?? Number.NaN,
  )
  expect(await end()).toBe(0.25)
})

it('says that the kernel does not say', async () => {
  const end = await startPressure(async () => undefined)
  expect(await end()).toBeUndefined()
})

// No upper bound: two earlier waits of other tasks may be counted between the two reads.
it('reads this kernel', async () => {
  const end = await startPressure()
  expect((await end()) ?? 0).toBeGreaterThanOrEqual(0)
})
