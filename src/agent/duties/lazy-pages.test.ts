import { expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { systemClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import type { Clone } from '../driver/memory-driver.ts'
import { createLazyPages } from './lazy-pages.ts'

const clone = (directory: string | undefined): Clone => ({
  ...{ podUid: 'p', slot: { namespace: 'n', set: 's', slot: 0, life: '0' }, generation: 1, epoch: 1 },
  ...{ containers: [], stage: 'Thawed' },
  ...(directory && {
    pages: { servers: [{ container: 'app', server: { pid: 1, start: 1 }, work: '/nowhere' }], directory },
  }),
})

function stand(retain: () => () => void = () => () => undefined) {
  const settles: { readonly signal: AbortSignal; end(error?: unknown): void }[] = []
  const lost: string[] = []
  const seconds: number[] = []
  const arrivals = createLazyPages({
    driver: {
      settle: (of, signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          settles.push({ signal, end: error => (error === undefined ? resolve(of) : reject(error)) })
        }),
    },
    store: { retain },
    metrics: { arrived: each => seconds.push(each) },
    onLost: (uid, container, message) => lost.push(`${uid} ${container} ${message}`),
    clock: { ...systemClock, sleep: (_, signal) => systemClock.sleep(1, signal) },
    log,
  })
  return { arrivals, settles, lost, seconds }
}
const signal = new AbortController().signal

it('what is there at once is not waited for', async () => {
  const { arrivals, settles } = stand()
  arrivals.note('p', clone(undefined))
  expect(arrivals.isComing('p')).toBe(false)
  await arrivals.whole('p', signal)
  expect(settles).toEqual([])
})

it('what comes is followed once, counted, and kept until it is there', async () => {
  const release = vi.fn()
  const { arrivals, settles, seconds } = stand(() => release)
  arrivals.note('p', clone('a'))
  arrivals.note('p', { ...clone('a'), stage: 'Frozen' })
  expect([settles.length, arrivals.isComing('p'), release.mock.calls.length]).toEqual([1, true, 0])
  const waiting = arrivals.whole('p', signal)
  settles[0]?.end()
  await waiting
  expect([arrivals.isComing('p'), release.mock.calls.length, seconds.length]).toEqual([false, 1, 1])
})

it('a generation that is not there any more does not matter', async () => {
  const { arrivals, settles } = stand(() => {
    throw new Error('no such generation')
  })
  arrivals.note('p', clone('a'))
  settles[0]?.end()
  await arrivals.whole('p', signal)
  expect(arrivals.isComing('p')).toBe(false)
})

it('what is taken away is not followed any more, and says nothing', async () => {
  const { arrivals, settles, lost, seconds } = stand()
  arrivals.note('p', clone('a'))
  const waiting = arrivals.whole('p', signal)
  arrivals.note('p', clone('b'))
  await waiting
  expect([settles[0]?.signal.aborted, settles.length, arrivals.isComing('p')]).toEqual([true, 2, true])
  arrivals.note('p', undefined)
  await vi.waitFor(() => expect(settles[1]?.signal.aborted).toBe(true))
  expect([arrivals.isComing('p'), lost, seconds]).toEqual([false, [], []])
})

it('what does not come is told, and stays the reason of the end', async () => {
  const { arrivals, settles, lost } = stand()
  arrivals.note('p', clone('a'))
  settles[0]?.end(new AgentError('PagesLost', 'container app'))
  await arrivals.whole('p', signal)
  expect(lost).toEqual([expect.stringMatching(/^p app the rest of the memory could not be loaded/)])
  expect([arrivals.isComing('p'), arrivals.wasLost('p')]).toEqual([false, true])
})

it('an app that ended by itself is not told here', async () => {
  const { arrivals, settles, lost } = stand()
  arrivals.note('p', clone('a'))
  settles[0]?.end(new AgentError('CloneLost'))
  await arrivals.whole('p', signal)
  expect([lost, arrivals.wasLost('p')]).toEqual([[], false])
})

it('anything else is tried again', async () => {
  const { arrivals, settles } = stand()
  arrivals.note('p', clone('a'))
  settles[0]?.end(new AgentError('SentinelUnavailable'))
  await vi.waitFor(() => expect(settles).toHaveLength(2))
  expect(arrivals.isComing('p')).toBe(true)
  settles[1]?.end()
  await arrivals.whole('p', signal)
})

it('who waits may give up', async () => {
  const { arrivals } = stand()
  arrivals.note('p', clone('a'))
  await expect(arrivals.whole('p', AbortSignal.abort(new Error('no more')))).rejects.toThrow('no more')
  expect(arrivals.isComing('p')).toBe(true)
})
