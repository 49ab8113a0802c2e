/** One failover of a real application, as a collector outside the cluster sees it: spans of the operator and of two agents. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { slotLeaseName } from '../../../src/api/numbered-slot.ts'
import { rootOf, traceOfChange } from '../../../src/traces/span.ts'
import {
  type CounterSet,
  count,
  counter,
  holderOf,
  killApp,
  promoted,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { createWorld, system } from '../lib/world.ts'

const workloads = [
  ['-n', system, 'deployment/understudy-operator'],
  ['-n', 'understudy-agents', 'daemonset/understudy-agent'],
] as const

/** Resolves when operator and agents run with this value of the variable; with `-` in place of the value, without it. */
async function withVariable(setting: string): Promise<void> {
  for (const of of workloads) await kubectl('set', 'env', ...of, `OTEL_EXPORTER_OTLP_ENDPOINT${setting}`)
  for (const of of workloads) await kubectl('rollout', 'status', ...of, '--timeout=240s')
}

/** Returns the trace as indented lines, with ms from the start of the root. */
function drawn(spans: readonly ReceivedSpan[]): string {
  const root = spans.find(({ parentId }) => parentId === undefined)
  const ms = (ns: bigint) => (Number(ns - (root?.from ?? 0n)) / 1e6).toFixed(1).padStart(8)
  const lines = (parent: string | undefined, indent: string): string[] =>
    spans
      .filter(({ parentId }) => parentId === parent)
      .sort((a, b) => (a.from < b.from ? -1 : 1))
      .flatMap(({ name, from, to, spanId, instance }) => [
        `${ms(from)} ${ms(to)}  ${indent}${name} (${instance})`,
        ...lines(spanId, `${indent}  `),
      ])
  return lines(undefined, '').join('\n')
}

describe.skipIf(needsNodes())('D22.whole: traces of a whole cluster', () => {
  let receiver: OtlpReceiver
  beforeAll(async () => {
    const { plan } = await playground()
    receiver = await startOtlpReceiver('takes', plan.host.address)
    await withVariable(`=${receiver.url}`)
  })
  afterAll(async () => {
    await withVariable('-')
    await receiver?.[Symbol.asyncDispose]()
  })

  it('a failover is one trace of the operator and the agents of both nodes', async () => {
    await using world = await createWorld()
    const set: CounterSet = { api: world.api, namespace: world.namespace, name: 'kept' }
    await world.createSet('kept', {
      ...{ replicas: 1, hotBackups: 1, template: counter.template },
      checkpoint: { interval: '1s' },
    })
    // Without slots all memory is saved.
    await eventually(async () => expect(await slotsOf(set)).toHaveLength(1))
    await saved(set)
    await count(set, 3)
    await saved(set)
    const [before] = await slotsOf(set)
    if (before === undefined) throw new Error('no slot')
    const pod = await holderOf(set, before)
    await killApp(pod)
    const after = await promoted(set, before)
    const { owner = '', epoch } = after
    const traceId = traceOfChange({ owner, slot: slotLeaseName('kept', after.slot), epoch })
    const spans = await eventually(async () => {
      const found = receiver.spans.filter(span => span.traceId === traceId)
      const names = found.map(({ name }) => name)
      expect(names).toEqual(
        expect.arrayContaining(['failover', 'detect and report the death', 'take over', 'thaw']),
      )
      return found
    })
    console.info(`\n${drawn(spans)}`)
    const by = (name: string) => spans.find(span => span.name === name)
    expect(by('failover')).toMatchObject({ spanId: rootOf(traceId), service: 'understudy-operator' })
    const nodes = [pod, await holderOf(set, after)].map(({ spec }) => spec?.nodeName)
    expect([by('detect and report the death')?.instance, by('take over')?.instance]).toEqual(nodes)
    expect(by('redirect connections to the heir')?.instance).toBe(nodes[0])
  })
})
