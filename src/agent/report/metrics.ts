import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { metricName } from '../../api/metrics.ts'

/** Metrics of the agent on memory, besides those of the kit. All in seconds and bytes. */
export interface AgentMetrics {
  saved(one: {
    readonly frozenSeconds: number
    /** The part that CRIU itself reports; the longest of the containers'. */
    readonly criuFrozenSeconds: number
    readonly skewSeconds: number
    readonly bytes: number
    readonly pipelineSeconds: number
  }): void
  received(one: { readonly bytes: number; readonly pipelineSeconds: number }): void
  /** Size of a generation on the wire, before TLS. */
  shipped(one: { readonly bytes: number }): void
  restored(one: { readonly seconds: number; readonly bytes: number }): void
  /** From a lazy restore to the arrival of the last page. */
  arrived(seconds: number): void
  /** Large memory was restored at once, because a lazy restore was not possible. */
  notLazy(): void
  /** Pages in transit did not arrive. */
  pagesLost(): void
  /** By phase, including `total`. */
  promoted(phases: Readonly<Record<string, number>>): void
  /** From the end of the process to the accepted write of its death. */
  deathTold(seconds: number): void
  /** Answer of a gate to the operator's message, which this node has passed on. */
  woke(verdict: string): void
  /** Gates of this node have refused so many more messages than before. */
  refusedAtGate(more: number): void
  /** So many primaries here are stopped now, because too few of their voters answer. */
  fenced(count: number): void
  failed(duty: string, reason: string): void
  tasks(counts: ReadonlyMap<string, number>): void
}

const short = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30]

const seconds = (registers: Registry[], name: string, help: string) =>
  new Histogram({ name: metricName(`${name}_seconds`), help, buckets: short, registers })

const instruments = (registers: Registry[]) => ({
  frozen: seconds(registers, 'checkpoint_frozen', 'How long primaries were stopped for a checkpoint.'),
  criuFrozen: seconds(
    registers,
    'checkpoint_criu_frozen',
    'How long processes were frozen according to CRIU, for the slowest container of a pod.',
  ),
  skew: seconds(registers, 'checkpoint_skew', 'Time between the stop of the first and of the last process.'),
  pipeline: new Histogram({
    name: metricName('generation_pipeline_seconds'),
    help: 'From the stop of a primary until the generation was complete on this node, by role (source, holder).',
    labelNames: ['role'],
    buckets: short,
    registers,
  }),
  size: new Histogram({
    name: metricName('generation_size_bytes'),
    help: 'Size of complete generations by role (source, holder).',
    labelNames: ['role'],
    buckets: [1e5, 1e6, 1e7, 1e8, 1e9, 1e10],
    registers,
  }),
  shipped: new Histogram({
    name: metricName('generation_shipped_bytes'),
    help: 'Bytes sent over the network for each fetched generation.',
    buckets: [1e4, 1e5, 1e6, 1e7, 1e8, 1e9],
    registers,
  }),
  restore: seconds(registers, 'restore', 'From the order to restore a generation until it was frozen.'),
  restored: new Histogram({
    name: metricName('restore_bytes'),
    help: 'Size of generations that were restored.',
    buckets: [1e5, 1e6, 1e7, 1e8, 1e9, 1e10],
    registers,
  }),
  arrival: new Histogram({
    name: metricName('pages_arrival_seconds'),
    help: 'From a lazy restore until all pages were loaded, while the application already ran.',
    buckets: [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
    registers,
  }),
  notLazy: new Counter({
    name: metricName('lazy_restore_failures_total'),
    help: 'Lazy restores that failed before the application ran; the agent then restored all memory at once.',
    registers,
  }),
  pagesLost: new Counter({
    name: metricName('pages_lost_total'),
    help: 'Applications that were killed because their remaining pages could not be loaded.',
    registers,
  }),
  promotion: new Histogram({
    name: metricName('promotion_seconds'),
    help: 'Promotions on this node by phase (enter, restore, thaw, answer, told, total).',
    labelNames: ['phase'],
    buckets: short,
    registers,
  }),
  told: seconds(registers, 'death_told', 'From the end of a process to the accepted write that reports it.'),
  wakes: new Counter({
    name: metricName('gate_messages_total'),
    help: 'Wake messages that this node passed to gates, by answer of the gate (woken, already, denied, malformed).',
    labelNames: ['verdict'],
    registers,
  }),
  refused: new Counter({
    name: metricName('gate_refusals_total'),
    help: 'Messages that gates on this node have refused: wrong, replayed or unreadable, from anywhere.',
    registers,
  }),
  fenced: new Gauge({
    name: metricName('fenced_primaries'),
    help: 'Primaries of this node that are stopped, because too few of their voters answer.',
    registers,
  }),
  failures: new Counter({
    name: metricName('agent_failures_total'),
    help: 'Failures of tasks by duty (kind of task) and reason.',
    labelNames: ['duty', 'reason'],
    registers,
  }),
  tasks: new Gauge({
    name: metricName('agent_duties'),
    help: 'Tasks that this node should be doing, by duty (kind of task).',
    labelNames: ['duty'],
    registers,
  }),
})

export function createAgentMetrics(registry: Registry): AgentMetrics {
  const registers = [registry]
  const of = instruments(registers)
  return {
    saved({ frozenSeconds, criuFrozenSeconds, skewSeconds, bytes, pipelineSeconds }) {
      of.frozen.observe(frozenSeconds)
      of.criuFrozen.observe(criuFrozenSeconds)
      of.skew.observe(skewSeconds)
      of.size.observe({ role: 'source' }, bytes)
      of.pipeline.observe({ role: 'source' }, pipelineSeconds)
    },
    received({ bytes, pipelineSeconds }) {
      of.size.observe({ role: 'holder' }, bytes)
      of.pipeline.observe({ role: 'holder' }, pipelineSeconds)
    },
    shipped: ({ bytes }) => of.shipped.observe(bytes),
    restored({ seconds: took, bytes }) {
      of.restore.observe(took)
      of.restored.observe(bytes)
    },
    arrived: each => of.arrival.observe(each),
    notLazy: () => of.notLazy.inc(),
    pagesLost: () => of.pagesLost.inc(),
    promoted(phases) {
      for (const [phase, each] of Object.entries(phases)) of.promotion.observe({ phase }, each)
    },
    deathTold: each => of.told.observe(each),
    refusedAtGate: more => of.refused.inc(more),
    woke: verdict => of.wakes.inc({ verdict }),
    fenced: count => of.fenced.set(count),
    failed: (duty, reason) => of.failures.inc({ duty, reason }),
    tasks(counts) {
      of.tasks.reset()
      for (const [duty, count] of counts) of.tasks.set({ duty }, count)
    },
  }
}
