import type { Api } from '../../src/kube/api.ts'
import { pathOf, pods } from '../../src/kube/resources.ts'

/** A line of the operator's log about the start of a pass over a set. */
export interface PassLine {
  /** Unix ms. */
  readonly at: number
  readonly reconcileId: string
}

/** Parses one line of the operator's log; undefined for other text (such as the stack trace of a crash). */
export function parseLogLine(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** Returns the starts of passes over one set, in the order of the log. */
export function passesOver(
  log: string,
  set: { readonly namespace: string; readonly name: string },
): PassLine[] {
  return log.split('\n').flatMap(text => {
    const line = parseLogLine(text)
    if (line?.['msg'] !== 'reconciling' || line['namespace'] !== set.namespace || line['name'] !== set.name)
      return []
    const { time, reconcileID } = line
    const at = Date.parse(String(time))
    return Number.isNaN(at) ? [] : [{ at, reconcileId: String(reconcileID) }]
  })
}

/** Returns the IDs of the passes over one set that wrote to pods. */
export function actingPasses(
  log: string,
  set: { readonly namespace: string; readonly name: string },
): string[] {
  return log.split('\n').flatMap(text => {
    const line = parseLogLine(text)
    return line?.['msg'] === 'acted' && line['namespace'] === set.namespace && line['name'] === set.name
      ? [String(line['reconcileID'])]
      : []
  })
}

/**
 * Returns a container's log since a time. The API takes whole seconds, so the result begins a little earlier.
 * @param since Unix ms
 */
export async function readLog(
  api: Pick<Api, 'request'>,
  pod: { readonly namespace: string; readonly name: string; readonly container?: string },
  since: number,
): Promise<string> {
  const { body } = await api.request('GET', pathOf(pods, { ...pod, subresource: 'log' }), {
    query: {
      sinceTime: new Date(Math.floor(since / 1000) * 1000).toISOString(),
      ...(pod.container === undefined ? {} : { container: pod.container }),
    },
  })
  // A single line of JSON arrives parsed if the server labels it as JSON.
  return typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
}
