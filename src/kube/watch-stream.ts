/** The body of a watch as events. */
import type { WatchEvent } from './api-types.ts'
import { errorFromStatus, KubeError, type Status } from './errors.ts'
import { jsonLines } from './json-lines.ts'
import type { KubeObject } from './object.ts'

const initialEventsEnd = 'k8s.io/initial-events-end'

/**
 * Events in order. Returns when the server ends the stream between two events.
 * @throws KubeError for an ERROR event (an expired version is Gone) and for a stream that breaks inside an event.
 */
export async function* watchEvents<T extends KubeObject>(
  body: AsyncIterable<Buffer>,
  subject: string,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const lines = jsonLines(body)
  try {
    for await (const line of lines) yield toEvent<T>(line, subject)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // The event is lost but nothing after it was passed on: watching on from the last version brings it again.
    throw new KubeError('Unavailable', `watch ${subject}: broken stream: ${error.message}`, { cause: error })
  }
}

function toEvent<T extends KubeObject>(line: unknown, subject: string): WatchEvent<T> {
  const { type, object } = line as { type?: string; object?: unknown }
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: object as T }
    case 'BOOKMARK': {
      const { resourceVersion, annotations } = (object as KubeObject).metadata
      return { type, resourceVersion, initialEventsEnd: annotations?.[initialEventsEnd] === 'true' }
    }
    case 'ERROR': {
      const status = object as Status
      throw errorFromStatus(status.code ?? 500, status, { what: `watch ${subject}` })
    }
    default:
      throw new KubeError('Unknown', `watch ${subject}: unknown event type ${JSON.stringify(type)}`)
  }
}
