/** The real operator sends its traces to a collector, and no collector can harm it. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { slotLeaseName } from '../../../src/api/numbered-slot.ts'
import { pods } from '../../../src/kube/resources.ts'
import { rootOf, traceOfChange } from '../../../src/traces/span.ts'
import { type Answer, type OtlpReceiver, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import type { OperatorProcess } from '../lib/operator-process.ts'
import { ofKind, onStage, type Stage } from '../lib/stage.ts'

let stage: Stage
let receiver: OtlpReceiver
beforeEach(async () => {
  stage = await onStage()
  receiver = await startOtlpReceiver()
})
afterEach(async () => {
  await stage?.[Symbol.asyncDispose]()
  await receiver?.[Symbol.asyncDispose]()
})

const setNow = () => stage.api.get<BackupPodSet>(backupPodSets, { namespace: stage.namespace, name: 'set' })

/** Starts an operator with the collector, lets a primary be lost, and waits until its successor has the slot. */
async function failOver(answer: Answer): Promise<OperatorProcess> {
  receiver.answer = answer
  const { process } = await stage.start('--no-leader-elect', '--otlp-endpoint', receiver.url)
  await stage.make({ replicas: 1, hotBackups: 1, coldBackups: 0 })
  const lost = await vi.waitFor(async () => {
    const live = await stage.live()
    const [primary] = ofKind(live, 'primary')
    const { status } = await setNow()
    if (primary === undefined || status?.summary?.hotbackups !== '1/1') throw new Error('not complete')
    return primary
  })
  await stage.api.delete(pods, { namespace: stage.namespace, name: lost.metadata.name })
  await vi.waitFor(async () => {
    expect((await setNow()).status?.lastFailover).toMatchObject({ from: lost.metadata.name })
  })
  return process
}

async function metricsOf(process: OperatorProcess): Promise<string> {
  const line = process.log.map(each => JSON.parse(each)).find(({ msg }) => msg === 'listening')
  const response = await fetch(`http://127.0.0.1:${line.metricsPort}/metrics`)
  return response.text()
}

const dropped = (metrics: string): number =>
  [...metrics.matchAll(/^understudy_trace_spans_dropped_total\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )

describe('D22.collector: the operator and a collector', () => {
  it('that takes them: a failover is a trace, which the status of the set determines', async () => {
    const process = await failOver('takes')
    await vi.waitFor(() => expect(receiver.spans.map(({ name }) => name)).toContain('failover'))
    // The slots follow the failover: the successor may not be ready when the status names it first.
    const { metadata, status } = await vi.waitFor(async () => {
      const set = await setNow()
      expect(set.status?.slots?.[0]?.pod).toBe(set.status?.lastFailover?.to)
      return set
    })
    const [slot] = status?.slots ?? []
    const traceId = traceOfChange({
      owner: metadata.uid,
      slot: slotLeaseName('set', slot?.slot ?? -1),
      epoch: slot?.epoch ?? -1,
    })
    const root = receiver.spans.find(({ name }) => name === 'failover')
    expect(root).toMatchObject({
      ...{ traceId, spanId: rootOf(traceId), parentId: undefined, service: 'understudy-operator' },
      attributes: { 'k8s.namespace.name': stage.namespace, 'understudy.to': slot?.pod },
    })
    const { at = '', seconds = 0 } = status?.lastFailover ?? {}
    expect(Number((root?.to ?? 0n) / 1_000_000n)).toBe(Date.parse(at))
    expect(Number((root?.to ?? 0n) - (root?.from ?? 0n)) / 1e9).toBeCloseTo(seconds, 3)
    expect(receiver.spans.filter(({ parentId }) => parentId === root?.spanId)).not.toEqual([])
    expect(receiver.requests[0]).toMatchObject({ path: '/v1/traces' })
    const metrics = await metricsOf(process)
    expect(metrics).toMatch(/^understudy_trace_spans_sent_total [1-9]/m)
    expect(dropped(metrics)).toBe(0)
  })

  it.each(['refuses', 'hangs'] as const)(
    'that %s: the failover and the end of the operator do not wait for it, and the spans are lost',
    async answer => {
      const process = await failOver(answer)
      await vi.waitFor(() => expect(receiver.requests.length).toBeGreaterThan(0))
      process.terminate()
      expect(await process.exited()).toBe(0)
      expect(receiver.spans).toEqual([])
    },
  )

  it('that is not there at all does not keep it from work', async () => {
    await receiver[Symbol.asyncDispose]()
    const process = await failOver('takes')
    process.terminate()
    expect(await process.exited()).toBe(0)
  })

  it('that comes back gets what waited', async () => {
    await failOver('refuses')
    await vi.waitFor(() => expect(receiver.requests.length).toBeGreaterThan(0))
    receiver.answer = 'takes'
    await vi.waitFor(() => expect(receiver.spans.map(({ name }) => name)).toContain('failover'))
  })
})
