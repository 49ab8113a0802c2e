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
  pendingStatus.note([promoted('a')])
  const news = pendingStatus.of()
  expect(news.lastTransition).toMatchObject({ pod: 'a', from: 'hotbackup', to: 'primary' })
  // A pass without actions, as after a conflict of the status write, removes nothing.
  pendingStatus.note([])
  expect(pendingStatus.of()).toBe(news)
  // The next status write reports a wake-up that ends during this one.
  pendingStatus.note([promoted('b')])
  pendingStatus.told(news)
  expect(pendingStatus.of().lastTransition?.pod).toBe('b')
  pendingStatus.told(pendingStatus.of())
  expect(pendingStatus.of().lastTransition).toBeUndefined()
})
