import { describe, expect, test, vi } from 'vitest'
import { createProgress, elapsed } from './progress.ts'

function output(isTTY: boolean) {
  const chunks: string[] = []
  return { isTTY, columns: 100, write: (text: string) => chunks.push(text), text: () => chunks.join('') }
}

describe('without a terminal', () => {
  test('one plain line a step, with its time and last detail', async () => {
    const out = output(false)
    let now = 0
    const progress = createProgress(out, { now: () => now })
    const result = await progress.step('build etcd', async step => {
      step.detail('compiling')
      step.detail('cached')
      now = 2_500
      return 7
    })
    expect(result).toBe(7)
    expect(out.text()).toMatch(/^ok {2}build etcd +2\.5 s {2}cached\n$/)
  })

  test('a failed step says so and passes the error on', async () => {
    const out = output(false)
    const failing = createProgress(out).step('x', () => Promise.reject(new Error('broken')))
    await expect(failing).rejects.toThrow('broken')
    expect(out.text()).toMatch(/^NO {2}x .*\n$/)
  })
})

test('on a terminal running steps stay below finished ones', async () => {
  const out = output(true)
  const progress = createProgress(out, { now: () => 0, colour: true })
  const inner = Promise.withResolvers<void>()
  const slow = progress.step('slow', () => inner.promise)
  await progress.step('fast', async () => {})
  const shown = out.text()
  expect(shown.indexOf('fast')).toBeLessThan(shown.lastIndexOf('slow'))
  inner.resolve()
  await slow
  expect(out.text().match(/✔/g)).toHaveLength(2)
})

test('on a terminal every line stays intact while steps run, and NO_COLOR leaves no colours', async () => {
  const out = output(true)
  const progress = createProgress(out, { now: () => 0, colour: false })
  progress.log('before')
  await progress.step('save', async step => {
    step.detail('now')
    progress.log('in between')
  })
  progress.log('after')
  const [running, done] = ['•', '✔'].map(mark => `${mark} ${'save'.padEnd(44)}    0.0 s`)
  expect(out.text()).toBe(
    [
      'before\n',
      `\r\u001b[J${running}\n`,
      `\u001b[1A\r\u001b[Jin between\n${running}  now\n`,
      `\u001b[1A\r\u001b[J${done}  now\n`,
      '\r\u001b[J',
      'after\n',
    ].join(''),
  )
})

test('a long step is announced where nothing shows that it runs', async () => {
  vi.useFakeTimers()
  try {
    const out = output(false)
    const work = Promise.withResolvers<void>()
    const done = createProgress(out, { now: () => 0 }).step('pull', () => work.promise)
    vi.advanceTimersByTime(4_999)
    expect(out.text()).toBe('')
    vi.advanceTimersByTime(1)
    expect(out.text()).toBe('... pull\n')
    work.resolve()
    await done
    vi.advanceTimersByTime(60_000)
    expect(out.text()).toMatch(/^\.{3} pull\nok {2}pull .*\n$/)
  } finally {
    vi.useRealTimers()
  }
})

describe('D19.progress', () => {
  test('the remaining time follows from the share that is done, or from what is known before', async () => {
    vi.useFakeTimers()
    try {
      const out = output(true)
      let now = 0
      const progress = createProgress(out, { now: () => now, colour: false })
      const work = Promise.withResolvers<void>()
      const steps = [
        progress.step('leave', step => {
          step.of(2, 10)
          step.detail('n3: busy')
          return work.promise
        }),
        progress.step('save', step => {
          step.expect(30)
          return work.promise
        }),
      ]
      now = 5_000
      vi.advanceTimersByTime(100)
      expect(out.text()).toMatch(/leave .* 2 of 10, about 20\.0 s left {2}n3: busy\n/)
      expect(out.text()).toMatch(/save .* about 25\.0 s left\n/)
      now = 40_000
      vi.advanceTimersByTime(100)
      // It takes longer than it should: there is no estimate.
      expect(out.text()).toMatch(/save +40\.0 s\n/)
      work.resolve()
      await Promise.all(steps)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a wait is shown while it takes more than a second, and leaves no line', async () => {
    vi.useFakeTimers()
    try {
      const out = output(true)
      const progress = createProgress(out, { now: () => 0, colour: false })
      const work = Promise.withResolvers<number>()
      const found = progress.wait('read 1,000 sets', () => work.promise)
      vi.advanceTimersByTime(999)
      expect(out.text()).toBe('')
      vi.advanceTimersByTime(1)
      expect(out.text()).toContain('read 1,000 sets')
      work.resolve(7)
      expect(await found).toBe(7)
      expect(out.text().endsWith('\u001b[1A\r\u001b[J')).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })
})

test.each([
  [400, '0.4 s'],
  [12_000, '12.0 s'],
  [265_000, '4 m 25 s'],
])('%d ms is %s', (ms, text) => {
  expect(elapsed(ms).trim()).toBe(text)
})
