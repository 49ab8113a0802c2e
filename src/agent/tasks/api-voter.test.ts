import { describe, expect, it, vi } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { silentLog as log } from '../../kube/log.ts'
import type { ApiAnswer } from '../report/api-answer.ts'
import { createApiVoter } from './api-voter.ts'

const p = { name: 'p', term: 4 }

const answer: ApiAnswer = { run: '0123456789abcdef', sentNs: 5n }

interface Fenced {
  readonly fenced: readonly string[]
  readonly isStillCalled: (uid: string) => Promise<boolean>
}

/** Two guarded pods, of which `q` is not one any more for the sentinel. */
function stand({ fenced = [], isStillCalled = async () => true }: Partial<Fenced> = {}) {
  const clock = createFakeClock()
  const asked: {
    readonly timeoutMs: number
    readonly settle: PromiseWithResolvers<ApiAnswer | undefined>
  }[] = []
  const told: (ApiAnswer & typeof p)[] = []
  const stop = new AbortController()
  const voter = createApiVoter({
    ask(timeoutMs) {
      const settle = Promise.withResolvers<ApiAnswer | undefined>()
      asked.push({ timeoutMs, settle })
      return settle.promise
    },
    sentinel: {
      async answered(request) {
        told.push(request)
        return request.name !== 'q'
      },
    },
    fenced: new Set(fenced),
    isStillCalled,
    guarded: new Map([
      ['q', { term: 1 }],
      ['p', { term: 4, acknowledged: { slot: 's', version: 2 } }],
    ]),
    ...{ clock, log, signal: stop.signal },
  })
  return { clock, asked, told, voter }
}
const both = [p, { name: 'q', term: 1 }].map(each => ({ ...answer, ...each }))

describe('the API server as a voter', () => {
  it('answers for all guarded pods when one has too few answers of nodes', async () => {
    const { asked, told, voter } = stand()
    voter.alone(p, 6_000)
    // Another try has to fit into the time for which an answer counts.
    expect(asked.map(({ timeoutMs }) => timeoutMs)).toEqual([2_000])
    asked[0]?.settle.resolve(answer)
    await expect.poll(() => told).toEqual(both)
  })

  it('answers also for a term that is not acknowledged yet', async () => {
    const { asked, told, voter } = stand()
    voter.alone({ name: 'p', term: 5 }, 6_000)
    asked[0]?.settle.resolve(answer)
    await expect.poll(() => told).toContainEqual({ ...answer, name: 'p', term: 5 })
    await expect.poll(() => told).toHaveLength(3)
  })

  it('D8.stopped: answers for a stopped pod in the term that it has and in the next one, or it would never run again', async () => {
    const { asked, told, voter } = stand({ fenced: ['p', 'q'] })
    for (const name of ['p', 'q']) voter.alone({ name, term: 5 }, 6_000)
    asked[0]?.settle.resolve(answer)
    const terms = ({ name, term }: typeof p) => `${name} ${term}`
    const expected = [...both, { name: 'p', term: 5 }, { name: 'q', term: 5 }].map(terms).sort()
    await expect.poll(() => told.map(terms).sort()).toEqual(expected)
  })

  it('D8.handed-over: answers for a stopped pod only if it still has its slot, or nothing would keep it from running on', async () => {
    const calls: [string, boolean | Error][] = [
      ['p', false],
      ['p', new KubeError('Timeout', 'no answer')],
      ['p', true],
    ]
    const { asked, told, voter } = stand({
      fenced: ['p'],
      async isStillCalled(uid) {
        const [name, called] = calls.shift() ?? ['', false]
        expect(uid).toBe(name)
        if (called instanceof Error) throw called
        return called
      },
    })
    const [, q] = both
    for (const expected of [[q], [q, q], [q, q, q, both[0]]]) {
      const times = asked.length
      await vi.waitFor(() => {
        voter.alone(p, 6_000)
        expect(asked).toHaveLength(times + 1)
      })
      asked[times]?.settle.resolve(answer)
      await expect.poll(() => told).toEqual(expected)
    }
  })

  it('is asked once at a time, and again at the next request', async () => {
    const { asked, told, voter } = stand()
    const untilAsked = (times: number) =>
      vi.waitFor(() => {
        voter.alone(p, 6_000)
        expect(asked).toHaveLength(times)
      })
    voter.alone(p, 6_000)
    voter.alone(p, 6_000)
    expect(asked).toHaveLength(1)
    asked[0]?.settle.reject(new KubeError('Timeout', 'no answer'))
    await untilAsked(2)
    expect(told).toEqual([])
    asked[1]?.settle.resolve(undefined)
    await untilAsked(3)
    expect(told).toEqual([])
  })

  it('answers by every write of the report for a while, and by none while nobody needs it', async () => {
    const { clock, told, voter } = stand()
    voter.answered(answer)
    voter.alone(p, 6_000)
    await clock.advance(9_000)
    expect(told).toEqual([])
    voter.answered(answer)
    await expect.poll(() => told).toEqual(both)
    await clock.advance(2_000)
    voter.answered(answer)
    await clock.advance(0)
    expect(told).toHaveLength(2)
  })
})
