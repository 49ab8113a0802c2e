import { open, stat } from 'node:fs/promises'

/** A request that the API server has answered, from its audit log. */
export interface AuditEvent {
  /** Unix ms, with µs in its fraction. */
  readonly received: number
  /** When the answer was complete. */
  readonly answered: number
  readonly user: string
  /** Name of the pod whose token was used. */
  readonly pod?: string
  readonly verb: string
  /** `resource` or `resource/subresource`. */
  readonly resource: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly code: number
}

/** Parses a line of the audit log (`audit.k8s.io/v1`, stage ResponseComplete); undefined for another stage. */
export function parseAuditLine(line: string): AuditEvent | undefined {
  const event = JSON.parse(line) as {
    stage: string
    verb: string
    user?: { username?: string; extra?: Readonly<Record<string, readonly string[]>> }
    objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string }
    responseStatus?: { code?: number }
    requestReceivedTimestamp: string
    stageTimestamp: string
  }
  if (event.stage !== 'ResponseComplete') return undefined
  const { resource = '', subresource, namespace, name } = event.objectRef ?? {}
  const pod = event.user?.extra?.['authentication.kubernetes.io/pod-name']?.[0]
  return {
    received: unixMs(event.requestReceivedTimestamp),
    answered: unixMs(event.stageTimestamp),
    user: event.user?.username ?? '',
    ...(pod !== undefined && { pod }),
    verb: event.verb,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    code: event.responseStatus?.code ?? 0,
  }
}

/** Parses RFC 3339 with up to nine decimals of a second; `Date.parse` would drop the µs. */
export function unixMs(time: string): number {
  const match = /^(.+?)(\.\d+)?Z$/.exec(time)
  const whole = Date.parse(`${match?.[1]}Z`)
  if (match === null || Number.isNaN(whole)) throw new Error(`not a time: ${time}`)
  return whole + Number(`0${match[2] ?? '.0'}`) * 1000
}

/**
 * Returns the time between two answered requests, ms: the first that matches `from` and the first after it that matches
 * `to`.
 */
export function betweenAnswers(
  events: readonly AuditEvent[],
  from: (event: AuditEvent) => boolean,
  to: (event: AuditEvent) => boolean,
): number {
  const first = events.find(event => event.code < 300 && from(event))
  // The server writes a line when it has answered the request; answers need not be in the order in which requests took
  // effect.
  const second = events.find(
    event => event.code < 300 && to(event) && event.answered > (first?.received ?? 0),
  )
  if (first === undefined || second === undefined) throw new Error('the audit log does not show the requests')
  return second.answered - first.answered
}

export interface AuditLog {
  /** Skips the lines written so far. */
  skip(): Promise<void>
  /** Returns the lines written since the last `skip`. The server writes a line when it has answered. */
  read(): Promise<AuditEvent[]>
}

/** Follows an audit log on this machine. It does not follow rotation: the playground's log is one file. */
export function openAuditLog(path: string): AuditLog {
  let offset = 0
  return {
    async skip() {
      offset = (await stat(path)).size
    },
    async read() {
      const file = await open(path)
      try {
        const { size } = await file.stat()
        if (size < offset) throw new Error(`${path} was rotated during a trial`)
        const bytes = Buffer.alloc(size - offset)
        await file.read(bytes, 0, bytes.length, offset)
        const text = bytes.toString()
        const complete = text.slice(0, text.lastIndexOf('\n') + 1)
        return complete.split('\n').flatMap(line => (line === '' ? [] : (parseAuditLine(line) ?? [])))
      } finally {
        await file.close()
      }
    },
  }
}
