import { describe, expect, it } from 'vitest'
import { createSamples, renderReport } from './report.ts'

describe('samples', () => {
  it('reports cases in the order in which they were measured, with baselines fixed or of the same run', () => {
    const samples = createSamples()
    samples.add('E1 total', 's', 0.5)
    samples.add('Deployment total', 's', 1)
    samples.add('E1 total', 's', 0.7)
    samples.add('Deployment total', 's', 3)
    const report = samples.report('paper', {
      'E1 total': { paper: 5.344, Deployment: { case: 'Deployment total' } },
    })
    expect(report).toEqual({
      name: 'paper',
      cases: [
        {
          case: 'E1 total',
          n: 2,
          median: 0.6,
          p95: 0.7,
          p99: 0.7,
          max: 0.7,
          unit: 's',
          baselines: { paper: 5.344, Deployment: 2 },
        },
        { case: 'Deployment total', n: 2, median: 2, p95: 3, p99: 3, max: 3, unit: 's', baselines: {} },
      ],
    })
  })

  it('gives every value as a line of CSV', () => {
    const samples = createSamples()
    samples.add('a, "b"', 's', 0.5)
    samples.add('a, "b"', 's', 0.25)
    samples.add('c', 'bytes', 7)
    const lines = ['case,unit,trial,value', '"a, ""b""",s,1,0.5', '"a, ""b""",s,2,0.25', 'c,bytes,1,7', '']
    expect(samples.csv()).toBe(lines.join('\n'))
  })

  it('refuses to report what was not measured', () => {
    const samples = createSamples()
    expect(() => samples.add('a', 's', Number.NaN)).toThrow('a: not a measured value')
    samples.add('a', 's', 1)
    expect(() => samples.add('a', 'bytes', 1)).toThrow('measured in s')
    expect(() => samples.report('x', { b: { paper: 1 } })).toThrow('never measured: b')
    expect(() => samples.report('x', { a: { other: { case: 'b' } } })).toThrow('never measured: b')
  })
})

describe('the table', () => {
  it('has a line a case, further baselines below it, and ratios', () => {
    const samples = createSamples()
    samples.add('E4 total', 's', 0.5)
    samples.add('gated pod', 'bytes', 512 * 1024)
    const text = renderReport(samples.report('x', { 'E4 total': { paper: 2, peer: 1 } }))
    expect(text.split('\n').map(line => line.split(/ {2,}/).filter(Boolean))).toEqual([
      ['case', 'n', 'median', 'p95', 'p99', 'max', 'unit', 'baseline', 'ratio'],
      expect.anything(),
      ['E4 total', '1', '0.5000', '0.5000', '0.5000', '0.5000', 's', 'paper', '2.0000', '0.25'],
      ['peer', '1.0000', '0.50'],
      ['gated pod', '1', '512', '512', '512', '512', 'KiB'],
    ])
  })
})
