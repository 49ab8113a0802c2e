import { expect, it } from 'vitest'
import { parseCsv } from './redis-benchmark.ts'

it("reads redis-benchmark's table", () => {
  const text =
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"\n' +
    '"SET","82644.63","0.312","0.088","0.303","0.447","0.615","4.103"\n'
  expect(parseCsv(text)).toEqual({ perSecond: 82644.63, p99: 0.000615 })
  expect(() => parseCsv('Could not connect')).toThrow('Could not connect')
})
