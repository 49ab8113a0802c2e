import { expect, test } from 'vitest'
import { oneMore, totalsOf } from './agent-metrics.ts'

const text = (generations: number, seconds: number) => `
# TYPE understudy_checkpoint_frozen_seconds histogram
understudy_checkpoint_frozen_seconds_sum ${seconds / 10}
understudy_checkpoint_criu_frozen_seconds_sum ${seconds / 20}
understudy_generation_pipeline_seconds_bucket{le="0.1",role="source"} 1
understudy_generation_pipeline_seconds_sum{role="source"} ${seconds}
understudy_generation_pipeline_seconds_count{role="source"} ${generations}
understudy_generation_pipeline_seconds_sum{role="holder"} 99
understudy_generation_pipeline_seconds_count{role="holder"} 9
understudy_generation_size_bytes_sum{role="source"} ${generations * 1000}
understudy_generation_shipped_bytes_sum 12
`

test('what one generation has added is the difference of the sums', () => {
  const more = oneMore(totalsOf(text(1, 0.5), 'source'), totalsOf(text(2, 0.75), 'source'))
  expect(more).toMatchObject({ count: 1, pipeline: 0.25, size: 1000, shipped: 0 })
  expect(more?.frozen).toBeCloseTo(0.025)
  expect(more?.criuFrozen).toBeCloseTo(0.0125)
})

test('none and several are no measurement', () => {
  const before = totalsOf(text(1, 0.5), 'source')
  expect(oneMore(before, before)).toBeUndefined()
  expect(oneMore(before, totalsOf(text(3, 0.5), 'source'))).toBeUndefined()
})

test('a series that is not there yet has counted nothing', () => {
  expect(totalsOf('', 'holder')).toEqual({
    count: 0,
    frozen: 0,
    criuFrozen: 0,
    pipeline: 0,
    size: 0,
    shipped: 0,
  })
})
