/** Parses the body of a watch into events. */
import type { WatchEvent } from './api-types.ts'
import { errorFromStatus, KubeError, type Status } from './errors.ts'
import { jsonLines } from './json-lines.ts'
import type { KubeObject } from './object.ts'

const initialEventsEnd = 'k8s.io/initial-events-end'

/**
 * Yields events in order. Returns when the server ends the stream between two events.
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
    // This event is lost, but no later event was passed on: a new watch from the last version delivers it again.
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
