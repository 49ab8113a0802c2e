import { describe, expect, it } from 'vitest'
import { apiServerVoter, partsOf } from '../../api/fence.ts'
import { nodeReports, silencesAnnotation } from '../../api/node-report.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { silentLog as log } from '../../kube/log.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { content } from '../testing/reports.ts'
import { askForAnswer } from './api-answer.ts'
import { createReportWriter } from './report.ts'

const runOf = (silences: number) => partsOf(apiServerVoter({ uid: 'of-a', silences })).run
const reportOf = (silences?: string) =>
  makeObject({
    metadata: {
      name: 'a',
      uid: 'of-a',
      ...(silences !== undefined && { annotations: { [silencesAnnotation]: silences } }),
    },
  })

describe('an answer of the API server', () => {
  const { signal } = new AbortController()
  const ask = async (answer: () => ReturnType<typeof reportOf>) => {
    let nowNs = 100n
    const writes: unknown[] = []
    const api = fakeApi({
      patch: async ({ plural }, { name }, { type, body }, options) => {
        nowNs += 50n
        writes.push({ plural, name, type, body, ms: options?.timeoutMs })
        return answer()
      },
    })
    const clock = createFakeClock()
    const got = await askForAnswer({ api, node: 'a', clock, nowNs: () => nowNs }, 1_500, signal).catch(
      (error: unknown) => error,
    )
    return { got, writes, at: new Date(clock.now()).toISOString() }
  }

  it('is the taken write of a time, counted from before it was sent', async () => {
    const { got, writes, at } = await ask(() => reportOf())
    expect(got).toEqual({ run: runOf(0), sentNs: 100n })
    expect(writes).toEqual([
      {
        ...{ plural: nodeReports.plural, name: 'a', type: 'merge', ms: 1_500 },
        body: { status: { updatedAt: at } },
      },
    ])
  })

  it.each([
    ['2', { run: runOf(2), sentNs: 100n }],
    ['many', undefined],
    ['-1', undefined],
  ])('is of the voter that has stated %s silences', async (silences, expected) => {
    expect((await ask(() => reportOf(silences))).got).toEqual(expected)
  })

  it('is none if the write fails', async () => {
    const failure = new KubeError('Timeout', 'no answer')
    const { got } = await ask(() => {
      throw failure
    })
    expect(got).toBe(failure)
  })
})

it('every write of the whole report is such an answer', async () => {
  const clock = createFakeClock()
  let nowNs = 7n
  let isAway = true
  const api = fakeApi({
    patch: async () => {
      nowNs += 1n
      if (isAway) throw new KubeError('Timeout', 'no answer')
      return reportOf('1')
    },
  })
  const writer = createReportWriter({ api, node: 'a', clock, nowNs: () => nowNs, log })
  const answers: unknown[] = []
  writer.onAnswer(answer => void answers.push(answer))
  const stop = new AbortController()
  const running = writer.run(stop.signal)
  writer.update(content(1))
  await clock.advance(0)
  expect(answers).toEqual([])
  isAway = false
  await clock.advance(1_000)
  expect(answers).toEqual([{ run: runOf(1), sentNs: 8n }])
  stop.abort(new Error('over'))
  await running
})
