import { describe, expect, it } from 'vitest'
import { diskUnreadReason, reportLimits, type SlotReport } from '../../api/node-report.ts'
import { hasNothing } from '../../slot/decide/kept.ts'

import { content, slot, stand } from '../testing/reports.ts'

describe('the limits of a report', () => {
  it('D10.bounds: the longest report fits into an object of etcd', async () => {
    const { clock, writer, writes, end } = stand()
    const takenAt = '2030-01-01T00:00:00.000000Z'
    const slots = Array.from(
      { length: reportLimits.slots },
      (_, index): SlotReport => ({
        ...{
          namespace: 'n'.repeat(63),
          name: `${'s'.repeat(50)}-${999_999_000 + index}`,
          incarnation: '0123abcd',
        },
        ...{ role: 'holder', generation: 1e15, epoch: 1e15, signed: true, takenAt, bytes: 1e12 },
        ...{ frozenSeconds: 123.456789, pipelineSeconds: 123.456789, usable: 'Staged', final: true },
        ...{ understudyUid: '8f2f5e9c-7d0e-4f57-a3a6-2b8d8f2c7f01', onDisk: { generation: 1e15, takenAt } },
        ...{ diskReason: 'r'.repeat(32) },
        ...{ reason: 'r'.repeat(32), message: 'x'.repeat(5_000) },
      }),
    )
    const cpuFeatures = Array.from({ length: 700 }, (_, index) => `feature_${index}`)
    const check = { name: 'c'.repeat(63), ok: false, message: 'm'.repeat(256), cure: 'c'.repeat(256) }
    const checks = Array.from({ length: reportLimits.checks }, () => check)
    writer.update({ ...content(1), slots, cpuFeatures, checks })
    await clock.advance(0)
    expect(Buffer.byteLength(JSON.stringify(writes[0]))).toBeLessThan(1.5 * 2 ** 20)
    await end()
  })

  it('D10.bounds: what has no room for all slots counts them, and what it does not name is not known to be gone', async () => {
    const { clock, writer, writes, end } = stand()
    const many = reportLimits.slots + 3
    const holders = Array.from({ length: many }, (_, index) => ({
      ...slot,
      name: `web-${index}`,
      generation: 1,
    }))
    // The slots that may be needed soon come last here, and stay.
    const source = {
      ...slot,
      name: `web-${many}`,
      role: 'source',
      generation: 1,
      message: 'x'.repeat(5_000),
    } as const
    const usable = { ...slot, name: `web-${many + 1}`, generation: 1, usable: 'Cold' } as const
    writer.update({ ...content(1), slots: [...holders, usable, source] })
    await clock.advance(0)
    const [cut] = writes
    expect(cut).toMatchObject({ slotsKnown: true, slotCount: many + 2 })
    expect(cut?.slots).toHaveLength(reportLimits.slots)
    expect(cut?.slots[0]).toMatchObject({ name: `web-${many}`, message: expect.stringMatching(/^x{1023}…$/) })
    expect(cut?.slots[1]).toMatchObject({ name: `web-${many + 1}` })
    expect(hasNothing(cut, undefined)).toBe(false)
    expect(hasNothing(cut, { ...slot, generation: 0 })).toBe(true)
    writer.update({ ...content(1), slots: holders.slice(0, reportLimits.slots) })
    await clock.advance(5_000)
    expect(writes[1]?.slots).toHaveLength(reportLimits.slots)
    expect(hasNothing(writes[1], undefined)).toBe(true)
    await end()
  })

  describe('D10.bounds: of 2,000 slots', () => {
    const slots = (count: number, more: Partial<SlotReport>, from = 0) =>
      Array.from({ length: count }, (_, index) => ({
        ...slot,
        name: `web-${from + index}`,
        generation: 0,
        ...more,
      }))
    const written = async (list: readonly SlotReport[]) => {
      const { clock, writer, writes, end } = stand()
      writer.update({ ...content(1), slots: list })
      await clock.advance(0)
      await end()
      expect(writes[0]?.slots).toHaveLength(reportLimits.slots)
      return writes[0]
    }
    const nothing = slots(1_200, {}, 800)
    const kept = { generation: 7 }

    it('all that are kept are named, so that nothing is kept of any other', async () => {
      const sources = slots(100, { role: 'source' })
      const onDisk = slots(200, { onDisk: { generation: 3, takenAt: '2026-01-01T00:00:00Z' } }, 100)
      const unread = slots(200, { reason: diskUnreadReason }, 300)
      const said = await written([...nothing, ...slots(300, kept, 500), ...unread, ...onDisk, ...sources])
      expect(said?.slots.filter(({ name }) => Number(name.slice('web-'.length)) < 800)).toHaveLength(800)
      expect(hasNothing(said, undefined)).toBe(true)
    })

    it.each<[string, readonly SlotReport[]]>([
      ['one copy has no room', [...nothing, ...slots(801, kept)]],
      [
        'one may be on the disk',
        [...nothing, ...slots(800, kept), ...slots(1, { reason: diskUnreadReason }, 800)],
      ],
      [
        'primaries without memory take its room',
        [...slots(2, { role: 'source' }), ...nothing, ...slots(799, kept, 2)],
      ],
    ])('%s, so that a slot which is not named may be kept', async (_, list) => {
      expect(hasNothing(await written(list), undefined)).toBe(false)
    })
  })

  it('D10.bounds: checks beyond its room are summed up, those that failed last', async () => {
    const { clock, writer, writes, end } = stand()
    const checks = Array.from({ length: 100 }, (_, index) => ({
      ...{ name: `c${index}`, ok: index !== 99, message: '' },
    }))
    writer.update({ ...content(1), ready: false, checks })
    await clock.advance(0)
    expect(writes[0]?.checks).toHaveLength(reportLimits.checks)
    expect(writes[0]?.checks[0]).toMatchObject({ name: 'c99', ok: false })
    expect(writes[0]?.checks.at(-1)).toMatchObject({
      name: 'others',
      ok: true,
      message: expect.stringMatching(/^37 more/),
    })
    await end()
  })

  it('D10.bounds: a node whose processors have more to say than there is room for carries no memory', async () => {
    const { clock, writer, writes, end } = stand()
    const features = (length: number) => Array.from({ length }, (_, index) => `f${index}`)
    writer.update({ ...content(1), cpuFeatures: features(reportLimits.cpuFeatures) })
    await clock.advance(0)
    expect(writes[0]).toMatchObject({ ready: true, checks: [] })
    for (const cpuFeatures of [features(reportLimits.cpuFeatures + 1), ['x'.repeat(64)]]) {
      writer.update({ ...content(1), cpuFeatures })
      await clock.advance(5_000)
      expect(writes.at(-1)).toMatchObject({ ready: false, checks: [{ name: 'cpu-features', ok: false }] })
      expect(writes.at(-1)?.cpuFeatures?.length).toBeLessThanOrEqual(reportLimits.cpuFeatures)
    }
    await end()
  })
})
