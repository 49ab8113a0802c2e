/** Sends spans by OTLP over HTTP. The only file that touches the library: it is loaded only where traces are sent. */
import { type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer'
import type { Sent } from './queue.ts'
import type { Span } from './span.ts'

export interface OtlpOptions {
  /** Such as `http://collector:4318/v1/traces`. */
  readonly url: string
  /** More headers of each request, such as a token. Never log them. */
  readonly headers: Readonly<Record<string, string>>
  /** Attributes of the process. */
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
}

/** The library's shape of a span, which it does not export. */
type LibrarySpan = Parameters<typeof JsonTraceSerializer.serializeRequest>[0][number]

/** A collector may answer with this status and take the same batch later, by the specification of OTLP. */
const later: readonly number[] = [429, 502, 503, 504]

/** Returns the function that sends a batch. It rejects if the collector cannot be reached, or the signal fires. */
export function createOtlpSender({ url, headers, resource, version }: OtlpOptions) {
  const common = {
    resource: resourceOf(resource),
    instrumentationScope: { name: 'understudy', version },
  }
  return async (batch: readonly Span[], signal: AbortSignal): Promise<Sent> => {
    const body = JsonTraceSerializer.serializeRequest(batch.map(span => librarySpan(span, common)))
    if (body === undefined) return { type: 'rejected', why: 'the spans cannot be encoded' }
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: Buffer.from(body),
      redirect: 'error',
      signal,
    })
    // The status says it all. An unread answer would keep its connection.
    await response.body?.cancel()
    if (response.ok) return { type: 'sent' }
    return {
      type: later.includes(response.status) ? 'unreachable' : 'rejected',
      why: `it answers with status ${response.status}`,
    }
  }
}

function resourceOf(attributes: Readonly<Record<string, string>>): LibrarySpan['resource'] {
  const resource: LibrarySpan['resource'] = {
    attributes: { ...attributes },
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  }
  return resource
}

function librarySpan(
  span: Span,
  common: Pick<LibrarySpan, 'resource' | 'instrumentationScope'>,
): LibrarySpan {
  const { traceId, spanId, parentId, name, from, to, attributes, failure } = span
  const contextOf = (spanId: string) => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED })
  // A clock that was set meanwhile must not give a span a length below 0.
  const end = Math.max(from, to)
  return {
    ...{ ...common, name, kind: SpanKind.INTERNAL, attributes: { ...attributes } },
    spanContext: () => contextOf(spanId),
    ...(parentId !== undefined && { parentSpanContext: contextOf(parentId) }),
    ...{ startTime: hrTime(from), endTime: hrTime(end), duration: hrTime(end - from), ended: true },
    status:
      failure === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: failure },
    ...{ links: [], events: [] },
    ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
  }
}

/** Seconds and nanoseconds. A double has microseconds of a present time, and no more. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.floor((ms - seconds * 1000) * 1000) * 1000]
}
