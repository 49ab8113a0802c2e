import { expect, it } from 'vitest'
import { parsePressure, startPressure } from './machine.ts'

it('reads how long somebody waited for a processor', () => {
  const text =
    'some avg10=84.48 avg60=86.63 avg300=67.36 total=1828195758\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n'
  expect(parsePressure(text)).toBe(1_828_195_758)
  expect(() => parsePressure('')).toThrow('not a pressure file')
})

it('tells a share of the time, or that the kernel does not say', async () => {
  const end = await startPressure()
  const share = await end()
  expect(share === undefined || (share >= 0 && share <= 1.5)).toBe(true)
})
