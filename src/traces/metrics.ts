import { Counter, type Registry } from 'prom-client'
import { metricName } from '../api/metrics.ts'

/** Why a span is not sent. `shutdown`: the process ended first. `invalid`: the code that made it has failed. */
export const dropReasons = ['queue_full', 'rejected', 'unreachable', 'shutdown', 'invalid'] as const
export type DropReason = (typeof dropReasons)[number]

export interface TraceMetrics {
  sent(spans: number): void
  dropped(spans: number, reason: DropReason): void
}

export function createTraceMetrics(registry: Registry): TraceMetrics {
  const registers = [registry]
  const sent = new Counter({
    name: metricName('trace_spans_sent_total'),
    help: 'Spans that the collector has accepted. Only with --otlp-endpoint.',
    registers,
  })
  const dropped = new Counter({
    name: metricName('trace_spans_dropped_total'),
    help: 'Spans that were not sent, by reason (queue_full, rejected, unreachable, shutdown, invalid). Only with --otlp-endpoint.',
    labelNames: ['reason'],
    registers,
  })
  // Initialised to 0: Prometheus sees no increase in a counter that first appears with its first loss.
  for (const reason of dropReasons) dropped.inc({ reason }, 0)
  return {
    sent: spans => sent.inc(spans),
    dropped: (spans, reason) => dropped.inc({ reason }, spans),
  }
}
