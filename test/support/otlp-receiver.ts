/** A receiver of OTLP over HTTP, as JSON: it parses what arrives, or refuses, or hangs. */
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { isSet, objectIn, objectsIn } from '../../src/api/unknown.ts'

export interface ReceivedSpan {
  /** `service.name` of the process. */
  readonly service: string
  /** `service.instance.id`. */
  readonly instance: string
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly name: string
  /** Nanoseconds since the epoch. */
  readonly from: bigint
  readonly to: bigint
  readonly attributes: Readonly<Record<string, unknown>>
  /** 2: an error. */
  readonly status: unknown
}

export type Answer = 'takes' | 'refuses' | 'hangs'

export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string
  /** How it answers from now on. */
  answer: Answer
  readonly spans: readonly ReceivedSpan[]
  /** All requests, whatever their answer. */
  readonly requests: readonly { readonly path: string; readonly headers: IncomingMessage['headers'] }[]
}

/** @param host its address, at which it listens. */
export async function startOtlpReceiver(answer: Answer = 'takes', host = '127.0.0.1'): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const requests: { path: string; headers: IncomingMessage['headers'] }[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    requests.push({ path: request.url ?? '', headers: request.headers })
    if (receiver.answer === 'hangs') return
    if (receiver.answer === 'refuses') return void response.writeHead(503).end()
    spans.push(...spansIn(JSON.parse(body)))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}')
  })
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const receiver: OtlpReceiver = {
    ...{ url: `http://${host}:${address.port}`, answer, spans, requests },
    [Symbol.asyncDispose]: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return receiver
}

function spansIn(request: unknown): ReceivedSpan[] {
  return objectsIn(objectIn(request)['resourceSpans']).flatMap(({ resource, scopeSpans }) => {
    const of = attributesIn(objectIn(resource)['attributes'])
    return objectsIn(scopeSpans)
      .flatMap(scope => objectsIn(scope['spans']))
      .map(span => ({
        ...{ service: textOf(of['service.name']), instance: textOf(of['service.instance.id']) },
        ...{ traceId: textOf(span['traceId']), spanId: textOf(span['spanId']), name: textOf(span['name']) },
        parentId: isSet(span['parentSpanId']) ? textOf(span['parentSpanId']) : undefined,
        ...{ from: nanosOf(span['startTimeUnixNano']), to: nanosOf(span['endTimeUnixNano']) },
        attributes: attributesIn(span['attributes']),
        status: objectIn(span['status'])['code'],
      }))
  })
}

const attributesIn = (list: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    objectsIn(list).map(({ key, value }) => [textOf(key), Object.values(objectIn(value))[0]]),
  )

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`no text: ${JSON.stringify(value)}`)
  return value
}

/** 64-bit numbers are texts in the JSON of Protocol Buffers. */
const nanosOf = (value: unknown): bigint => BigInt(textOf(value))
