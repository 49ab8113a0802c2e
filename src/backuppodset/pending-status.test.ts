import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import type { Outcome } from './act/outcome.ts'
import { createPendingStatus } from './pending-status.ts'
import { makePod } from './testing/snapshots.ts'

const promoted = (name: string): Outcome => ({
  type: 'done',
  action: { type: 'convert', pod: makePod(name, 'hotbackup'), to: 'primary', role: undefined, wake: false },
  pod: undefined,
})

it('keeps what happened until a status has told exactly that', () => {
  const desk = createPendingStatus(createFakeClock())
  desk.note('set', [promoted('a')])
  const news = desk.of('set')
  expect(news.lastTransition).toMatchObject({ pod: 'a', from: 'hotbackup', to: 'primary' })
  // A pass without actions, as after a conflict of the status write, removes nothing.
  desk.note('set', [])
  expect(desk.of('set')).toBe(news)
  // The next status write reports a wake-up that ends during this one.
  desk.note('set', [promoted('b')])
  desk.told('set', news)
  expect(desk.of('set').lastTransition?.pod).toBe('b')
  desk.told('set', desk.of('set'))
  expect(desk.of('set').lastTransition).toBeUndefined()
})
