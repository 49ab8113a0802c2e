import { expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { systemClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import type { Clone } from '../criu/memory-driver.ts'
import { createLazyPages } from './lazy-pages.ts'

const clone = (directory: string | undefined): Clone => ({
  ...{ podUid: 'p', slot: { namespace: 'n', name: 's-0', incarnation: '0' }, generation: 1, epoch: 1 },
  ...{ containers: [], stage: 'Thawed' },
  ...(directory && {
    pages: { servers: [{ container: 'app', server: { pid: 1, start: 1 }, work: '/nowhere' }], directory },
  }),
})

function stand(retain: () => () => void = () => () => undefined) {
  const settles: { readonly signal: AbortSignal; end(error?: unknown): void }[] = []
  const lost: string[] = []
  const seconds: number[] = []
  const lazyPages = createLazyPages({
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
  return { lazyPages, settles, lost, seconds }
}
const signal = new AbortController().signal

it('what is there at once is not waited for', async () => {
  const { lazyPages, settles } = stand()
  lazyPages.note('p', clone(undefined))
  expect(lazyPages.isComing('p')).toBe(false)
  await lazyPages.whole('p', signal)
  expect(settles).toEqual([])
})

it('what comes is followed once, counted, and kept until it is there', async () => {
  const release = vi.fn()
  const { lazyPages, settles, seconds } = stand(() => release)
  lazyPages.note('p', clone('a'))
  lazyPages.note('p', { ...clone('a'), stage: 'Frozen' })
  expect([settles.length, lazyPages.isComing('p'), release.mock.calls.length]).toEqual([1, true, 0])
  const waiting = lazyPages.whole('p', signal)
  settles[0]?.end()
  await waiting
  expect([lazyPages.isComing('p'), release.mock.calls.length, seconds.length]).toEqual([false, 1, 1])
})

it('a generation that is not there any more does not matter', async () => {
  const { lazyPages, settles } = stand(() => {
    throw new Error('no such generation')
  })
  lazyPages.note('p', clone('a'))
  settles[0]?.end()
  await lazyPages.whole('p', signal)
  expect(lazyPages.isComing('p')).toBe(false)
})

it('what is taken away is not followed any more, and says nothing', async () => {
  const { lazyPages, settles, lost, seconds } = stand()
  lazyPages.note('p', clone('a'))
  const waiting = lazyPages.whole('p', signal)
  lazyPages.note('p', clone('b'))
  await waiting
  expect([settles[0]?.signal.aborted, settles.length, lazyPages.isComing('p')]).toEqual([true, 2, true])
  lazyPages.note('p', undefined)
  await vi.waitFor(() => expect(settles[1]?.signal.aborted).toBe(true))
  expect([lazyPages.isComing('p'), lost, seconds]).toEqual([false, [], []])
})

it('what does not come is told, and stays the reason of the end', async () => {
  const { lazyPages, settles, lost } = stand()
  lazyPages.note('p', clone('a'))
  settles[0]?.end(new AgentError('PagesLost', 'container app'))
  await lazyPages.whole('p', signal)
  expect(lost).toEqual([expect.stringMatching(/^p app the rest of the memory could not be loaded/)])
  expect([lazyPages.isComing('p'), lazyPages.wasLost('p')]).toEqual([false, true])
})

it('an app that ended by itself is not told here', async () => {
  const { lazyPages, settles, lost } = stand()
  lazyPages.note('p', clone('a'))
  settles[0]?.end(new AgentError('CloneLost'))
  await lazyPages.whole('p', signal)
  expect([lost, lazyPages.wasLost('p')]).toEqual([[], false])
})

it('anything else is tried again', async () => {
  const { lazyPages, settles } = stand()
  lazyPages.note('p', clone('a'))
  settles[0]?.end(new AgentError('SentinelUnavailable'))
  await vi.waitFor(() => expect(settles).toHaveLength(2))
  expect(lazyPages.isComing('p')).toBe(true)
  settles[1]?.end()
  await lazyPages.whole('p', signal)
})

it('who waits may give up', async () => {
  const { lazyPages } = stand()
  lazyPages.note('p', clone('a'))
  await expect(lazyPages.whole('p', AbortSignal.abort(new Error('no more')))).rejects.toThrow('no more')
  expect(lazyPages.isComing('p')).toBe(true)
})
