import type { Registry } from 'prom-client'
import type { Clock } from '../kube/clock.ts'
import type { Log } from '../kube/log.ts'
import { createTraceMetrics } from './metrics.ts'
import { createTraceQueue, type TraceQueue } from './queue.ts'

export interface TraceOptions {
  /** As `tracesUrl` returns it; undefined: no traces. */
  readonly otlpEndpoint?: string | undefined
  /** See `headersIn`. */
  readonly otlpHeaders?: Readonly<Record<string, string>>
}

export interface TraceParts {
  /** Such as `understudy-operator`. */
  readonly service: string
  /** Distinguishes this process from others of the service. */
  readonly instance: string
  readonly version: string
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Log
}

/** Opens the way to the collector. Without one it returns undefined, and loads nothing. */
export async function openTraces(
  { otlpEndpoint: url, otlpHeaders: headers = {} }: TraceOptions,
  { service, instance, version, registry, clock, log }: TraceParts,
): Promise<TraceQueue | undefined> {
  if (url === undefined) return undefined
  const { createOtlpSender } = await import('./otlp.ts')
  const resource = {
    ...{ 'service.namespace': 'understudy', 'service.name': service, 'service.version': version },
    'service.instance.id': instance,
  }
  log.info({ to: new URL(url).origin }, 'traces are sent')
  return createTraceQueue({
    send: createOtlpSender({ url, headers, resource, version }),
    metrics: createTraceMetrics(registry),
    ...{ clock, log },
  })
}
