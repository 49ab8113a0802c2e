import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { createLife } from './life.ts'

it('R31: a piece of work leaves nothing on signals that last, whether it ends at once or goes on behind its pass', async () => {
  const term = new AbortController()
  const pass = new AbortController()
  const listeners = () => getEventListeners(term.signal, 'abort').length
  for (let i = 0; i < 100; i += 1) createLife([pass.signal, term.signal]).end()
  expect(listeners()).toBe(0)
  const life = createLife([pass.signal, term.signal])
  let finish: () => void = () => {}
  const behind = life.during(
    () =>
      new Promise<void>(resolve => {
        finish = resolve
      }),
  )
  life.end()
  expect(listeners()).toBe(1)
  term.abort(new Error('the term is over'))
  expect(life.signal.reason).toEqual(new Error('the term is over'))
  finish()
  await behind
  const next = createLife([pass.signal])
  await next.during(async () => {})
  next.end()
  expect(getEventListeners(pass.signal, 'abort')).toEqual([])
})
