import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../playground/until.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { annotations } from '../../src/api/labels.ts'
import { nodeReports, parseReport } from '../../src/api/node-report.ts'
import { nodes } from '../../src/kube/resources.ts'
import { agentPods } from '../../zoo/slots.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { counterTemplate, setOf, sizesOf } from '../objects.ts'
import { type AuditLog, openAuditLog } from '../observe/audit.ts'
import { podsOf } from '../observe/pods.ts'
import { isReady } from '../observe/state.ts'
import type { Sampler } from '../report.ts'
import { agentUsage } from './agent-usage.ts'

const primaries = 50
const trialSeconds = 30
/** No checkpoint happens during the measurement. */
const interval = '1h'
const name = 'resting'
const patience = { patienceMs: 300_000, pollMs: 500 } as const

const none = 'no primaries'
const cases = ['agent CPU', 'agent memory', 'API requests'] as const
const roles = ['node of the primaries', 'node of their heir'] as const
/** Figures not to exceed: share of a processor, bytes, requests a second. */
const limits = { 'agent CPU': 0.03, 'agent memory': 150e6, 'API requests': 0.2 } as const

export const rest: Bench = {
  name: 'rest',
  title: `agent and sentinel of a node with ${primaries} primaries that nobody saves or kills, beside none`,
  trials: 5,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-rest', context.signal, namespace =>
      measure(context, namespace, samples),
    )
    return samples.report(
      'rest',
      Object.fromEntries(
        roles.flatMap(role =>
          cases.map(what => [
            `${what}, ${role}`,
            { limit: limits[what], [none]: { case: `${what}, ${role}, ${none}` } },
          ]),
        ),
      ),
    )
  },
}

/** The operator moves no primary away from the node. */
const cordoning = (unschedulable: boolean) => ({
  metadata: { annotations: { [annotations.stayRequested]: unschedulable ? 'yes' : null } },
  spec: { unschedulable },
})

async function measure(context: BenchContext, namespace: string, samples: Sampler): Promise<void> {
  const { api, signal } = context
  const playground = demand(context.playground, 'a playground')
  const [crowded = '', heirs = '', ...others] = playground.nodes
  const places = [
    { role: roles[0], node: crowded },
    { role: roles[1], node: heirs },
  ] as const
  const audit = openAuditLog(playground.auditLogPath)
  for (let trial = 1; trial <= context.n; trial += 1)
    await observe(context, audit, places, samples, `, ${none}`)

  const ref = { namespace, name }
  const allow = (able: readonly string[]) =>
    Promise.all(
      playground.nodes.map(node =>
        api.patch(
          nodes,
          { name: node },
          { type: 'merge', body: cordoning(!able.includes(node)) },
          { signal },
        ),
      ),
    )
  try {
    // All primaries on one node, and all that keep their memory on others.
    await allow([crowded])
    await api.create(
      backupPodSets,
      setOf(
        name,
        { primary: primaries, hotbackup: 0, coldbackup: 0 },
        counterTemplate(context.images.counter, name),
        {
          checkpoint: { interval },
        },
      ),
      { namespace, signal },
    )
    await until(
      `${primaries} primaries`,
      async () => (await podsOf(context, namespace, name)).filter(isReady).length === primaries,
      patience,
    )
    await allow([heirs, ...others])
    const spec = sizesOf({ primary: primaries, hotbackup: 1, coldbackup: 0 })
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec } }, { signal })
    await until('memory of all primaries', () => isAllUsable(context), patience)
    const heir = (await podsOf(context, namespace, name)).find(({ spec }) => spec?.nodeName !== crowded)
    const node = demand(heir?.spec?.nodeName, 'the node of the heir')
    for (let trial = 1; trial <= context.n; trial += 1) {
      await observe(context, audit, [places[0], { role: roles[1], node }], samples, '')
      context.say(`${trial}/${context.n}`)
    }
  } finally {
    await allow(playground.nodes)
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Foreground' }).catch(() => undefined)
    await until(
      'the end of the set',
      async () => (await podsOf(context, namespace, name)).length === 0,
      patience,
    )
  }
}

/** True if each slot could be restored on another node than that of its primary. */
async function isAllUsable({ api, signal }: BenchContext): Promise<boolean> {
  const { items } = await api.list(nodeReports, {}, { signal })
  const slots = items.flatMap(report => parseReport(report).status?.slots ?? [])
  const usable = slots.filter(({ role, usable }) => role === 'holder' && usable !== undefined)
  return new Set(usable.map(({ name }) => name)).size === primaries
}

/** Notes what the agents use during one trial. */
async function observe(
  { api, playground, signal, clock }: BenchContext,
  audit: AuditLog,
  places: readonly { readonly role: string; readonly node: string }[],
  samples: Sampler,
  suffix: string,
): Promise<void> {
  const cluster = demand(playground, 'a playground')
  const usages = () => Promise.all(places.map(({ node }) => agentUsage(api, cluster, node)))
  const agents = new Map((await agentPods(api)).map(({ metadata, spec }) => [spec?.nodeName, metadata.name]))
  await audit.skip()
  const [before, from] = [await usages(), clock.now()]
  await sleep(trialSeconds * 1_000, undefined, { signal })
  const [after, to] = [await usages(), clock.now()]
  const seconds = (to - from) / 1_000
  const events = await audit.read()
  for (const [index, { role, node }] of places.entries()) {
    const [first, last] = [before[index], after[index]]
    if (first === undefined || last === undefined) throw new Error(`nothing was measured on ${node}`)
    const requests = events.filter(({ pod }) => pod !== undefined && pod === agents.get(node)).length
    samples.add(`agent CPU, ${role}${suffix}`, 'ratio', (last.cpuSeconds - first.cpuSeconds) / seconds)
    const sentinel = last.sentinelCpuSeconds - first.sentinelCpuSeconds
    samples.add(`sentinel's part of it, ${role}${suffix}`, 'ratio', sentinel / seconds)
    samples.add(`agent memory, ${role}${suffix}`, 'bytes', last.memory - last.saved)
    samples.add(`saved memory, ${role}${suffix}`, 'bytes', last.saved)
    samples.add(`API requests, ${role}${suffix}`, 'requests/s', requests / seconds)
  }
}
