import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { silentLog } from '../../kube/log.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { content, slot, stand } from '../testing/reports.ts'
import type { ReportContent } from './content.ts'
import { createReportWriter } from './report.ts'

describe('the report of a node', () => {
  it('belongs to its Node, so that it goes with it, and to the one that follows', async () => {
    const clock = createFakeClock()
    const bodies: object[] = []
    let exists = true
    let uid: string | undefined
    const api = fakeApi({
      patch: async (_, __, { body }) => {
        if (!exists) throw new KubeError('NotFound', 'no report')
        if (body.metadata !== undefined) bodies.push(body.metadata)
        return makeObject(body)
      },
      create: async (_, body) => {
        exists = true
        return makeObject(body)
      },
    })
    const owner = async () => {
      if (uid === undefined) throw new KubeError('Timeout', 'later')
      return { apiVersion: 'v1', kind: 'Node', name: 'a', uid } as const
    }
    const writer = createReportWriter({ api, node: 'a', owner, clock, log: silentLog })
    const stop = new AbortController()
    const running = writer.run(stop.signal)
    writer.update(content(1))
    await clock.advance(0)
    expect(bodies).toEqual([])
    uid = 'first'
    await clock.advance(10_000)
    await clock.advance(10_000)
    exists = false
    uid = 'second'
    await clock.advance(10_000)
    const belongsTo = (node: string) => ({
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'a', uid: node }],
    })
    expect(bodies).toEqual([belongsTo('first'), belongsTo('second')])
    stop.abort(new Error('over'))
    await running
  })

  it('is made, then tells progress at most every five seconds and what others act on at once', async () => {
    const { clock, writer, generations, end } = stand()
    writer.update(content(1))
    await clock.advance(0)
    expect(generations()).toEqual([1])
    for (const generation of [2, 3, 4]) {
      await clock.advance(1_000)
      writer.update(content(generation))
    }
    await clock.advance(1_900)
    expect(generations()).toEqual([1])
    await clock.advance(200)
    expect(generations()).toEqual([1, 4])
    writer.update(content(5, 'Frozen'))
    await clock.advance(0)
    expect(generations()).toEqual([1, 4, 5])
    // A primary that makes way for its successor waits for that.
    const ready = content(6, 'Frozen')
    writer.update({ ...ready, slots: ready.slots?.map(slot => ({ ...slot, successorGeneration: 6 })) })
    await clock.advance(0)
    expect(generations()).toEqual([1, 4, 5, 6])
    const fenced = content(7, 'Frozen')
    writer.update({ ...fenced, slots: fenced.slots?.map(slot => ({ ...slot, fenced: true })) })
    await clock.advance(0)
    expect(generations()).toEqual([1, 4, 5, 6, 7])
    await end()
  })

  it('gives way to what is more urgent, and then says what is true by then', async () => {
    let over = Promise.withResolvers<void>()
    const { clock, writer, generations, end } = stand(true, true, { giveWay: () => over.promise })
    writer.update(content(1))
    await clock.advance(100)
    writer.update(content(2, 'Frozen'))
    await clock.advance(0)
    expect(generations()).toEqual([])
    over.resolve()
    await clock.advance(0)
    expect(generations()).toEqual([2])
    over = Promise.withResolvers()
    writer.update(content(3))
    await clock.advance(0)
    expect(generations()).toEqual([2])
    over.resolve()
    await clock.advance(0)
    expect(generations()).toEqual([2, 3])
    // The failover of another slot may wait for a statement.
    over = Promise.withResolvers()
    const silent = content(4)
    writer.update({ ...silent, slots: silent.slots?.map(it => ({ ...it, silentTerm: 7 })) })
    await clock.advance(0)
    expect(generations()).toEqual([2, 3, 4])
    await end()
  })

  it('is written again though nothing is new: silence is a sign, too', async () => {
    const { clock, writer, writes, end } = stand()
    writer.update(content(1))
    await clock.advance(0)
    await clock.advance(9_900)
    expect(writes).toHaveLength(1)
    await clock.advance(200)
    expect(writes).toHaveLength(2)
    expect(writes[1]?.updatedAt).not.toBe(writes[0]?.updatedAt)
    await end()
  })

  const starting = (): ReportContent => ({ ...content(0), ready: false, slots: undefined })

  it('D7.kept: an agent that starts leaves alone what was said of slots, and says that this may not be all', async () => {
    const { clock, writer, writes, end } = stand(true)
    writer.update(starting())
    await clock.advance(0)
    expect(writes).toMatchObject([{ slotsKnown: false, ready: false }])
    expect(Object.keys(writes[0] ?? {})).not.toContain('slots')
    expect(Object.keys(writes[0] ?? {})).not.toContain('slotCount')
    expect(writer.slotsTold).toBe(false)
    writer.update(content(1))
    await clock.advance(0)
    expect(writes[1]).toMatchObject({ slotsKnown: true, slotCount: 1, slots: [{ generation: 1 }] })
    expect(writer.slotsTold).toBe(true)
    await end()
  })

  it.each([
    ['no report', false, true],
    ['a report without a status', true, false],
  ])('says that there is nothing, and may be something, where there was %s before', async (_, ...there) => {
    const { clock, writer, writes, end } = stand(...there)
    writer.update(starting())
    await clock.advance(0)
    expect(writes).toMatchObject([{ slots: [], slotsKnown: false }])
    await end()
  })

  it('says where the sentinel listens, takes that back, and leaves it alone until it is known', async () => {
    const { clock, writer, writes, end } = stand(true)
    const heartbeats = { port: 9443, run: '0123456789abcdef', key: 'ab' }
    for (const known of [{}, { heartbeats }, { heartbeats: null }]) {
      writer.update({ ...content(1), ...known })
      await clock.advance(0)
    }
    expect(writes.map(status => 'heartbeats' in status)).toEqual([false, true, true])
    expect(writes.map(status => status.heartbeats)).toEqual([undefined, heartbeats, null])
    await end()
  })

  it('takes back a trouble of the disk that is over, and a disk that is not used any more', async () => {
    const { clock, writer, writes, end } = stand(true)
    const memory = { bytes: 1, budget: 2 }
    const trouble = { reason: 'KeyMissing', message: 'the key is missing' }
    for (const disk of [{ ...memory, ...trouble }, memory, undefined]) {
      writer.update({ ...content(1), memory, ...(disk && { disk }) })
      await clock.advance(5_000)
    }
    const none = { reason: null, message: null }
    expect(writes.map(({ disk }) => disk)).toEqual([{ ...memory, ...trouble }, { ...memory, ...none }, null])
    await end()
  })

  it('names slots so that operators and agents of the version before read them, too', async () => {
    const { clock, writer, writes, end } = stand()
    const other = { ...slot, name: 'web-0.kind', generation: 1 }
    writer.update({ ...content(1), slots: [{ ...slot, generation: 1 }, other] })
    await clock.advance(0)
    expect(writes[0]?.slots).toEqual([
      {
        ...{ namespace: 'default', set: 'web', slot: 0, life: '0123abcd' },
        ...{ name: 'web-0', incarnation: '0123abcd', role: 'holder', generation: 1 },
      },
      other,
    ])
    await end()
  })
})
