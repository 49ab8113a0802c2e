import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { createPendingStatus } from './pending-status.ts'
import type { Outcome } from './plan.ts'
import { makePod } from './testing/snapshots.ts'

const promoted = (name: string): Outcome => ({
  type: 'done',
  action: { type: 'convert', pod: makePod(name, 'hotbackup'), to: 'primary', role: undefined, wake: false },
  pod: undefined,
})

it('keeps what happened until a status has told exactly that', () => {
  const pendingStatus = createPendingStatus(createFakeClock())
  pendingStatus.note('set', [promoted('a')])
  const news = pendingStatus.of('set')
  expect(news.lastTransition).toMatchObject({ pod: 'a', from: 'hotbackup', to: 'primary' })
  // A pass without actions, as after a conflict of the status write, removes nothing.
  pendingStatus.note('set', [])
  expect(pendingStatus.of('set')).toBe(news)
  // The next status write reports a wake-up that ends during this one.
  pendingStatus.note('set', [promoted('b')])
  pendingStatus.told('set', news)
  expect(pendingStatus.of('set').lastTransition?.pod).toBe('b')
  pendingStatus.told('set', pendingStatus.of('set'))
  expect(pendingStatus.of('set').lastTransition).toBeUndefined()
})
