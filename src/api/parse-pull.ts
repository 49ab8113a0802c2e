import { checkpointSources, defaults, type HttpHeader, limits, pushMethods } from './backuppodset.ts'
import { headerName, headerValue, isOwnHeader, statePath } from './http-source.ts'
import { type ParsedPull, parseBytes } from './memory.ts'
import { intervalOf } from './parse-memory.ts'
import type { Reader } from './reader.ts'
import { containerNames } from './template-rules.ts'
import { type Anything, isSet, objectIn, objectsIn } from './unknown.ts'

type Spec = Readonly<Record<string, unknown>>

/** True if the app's state is pulled over HTTP, whatever the other fields contain. */
export const pullsState = (spec: Spec): boolean => objectIn(spec['checkpoint'])['source'] === 'http'

/**
 * Parses how to pull the state of a set with `checkpoint.source: http`. Rules check how its fields relate to each
 * other.
 */
export function parsePull(read: Reader, spec: Spec): ParsedPull | undefined {
  const checkpoint = read.object('spec.checkpoint', spec['checkpoint'])
  const source = read.oneOf(
    'spec.checkpoint.source',
    checkpoint['source'],
    checkpointSources,
    defaults.checkpoint.source,
  )
  if (source !== 'http') return undefined
  const at = 'spec.checkpoint.http'
  const http = read.object(at, checkpoint['http'])
  const push = read.object(`${at}.push`, http['push'])
  const standard = defaults.httpSource
  if (isSet(checkpoint['http']) && !isSet(http['port']))
    read.invalid(`${at}.port`, undefined, 'a port number')
  const port = read.integer(`${at}.port`, http['port'], limits.port, limits.port.max)
  const path = read.text(`${at}.path`, http['path'], { min: 1, max: 1024 }, standard.path)
  const pushPath = read.text(`${at}.push.path`, push['path'], { min: 1, max: 1024 }, path)
  for (const [name, value] of [
    [`${at}.path`, path],
    [`${at}.push.path`, pushPath],
  ] as const)
    if (!new RegExp(statePath).test(value)) read.invalid(name, value, 'a path such as /state')
  return Object.freeze({
    intervalMs: intervalOf(read, checkpoint['interval'] ?? defaults.checkpoint.interval),
    port,
    path,
    headers: headersOf(read, `${at}.headers`, http['headers']),
    maxBytes: read.measure(
      `${at}.maxSize`,
      http['maxSize'] ?? standard.maxSize,
      parseBytes,
      limits.stateBytes,
      'a size from 1 to 256Mi, such as 16Mi',
    ),
    timeoutMs:
      1000 *
      read.integer(
        `${at}.timeoutSeconds`,
        http['timeoutSeconds'],
        limits.pullTimeout,
        standard.timeoutSeconds,
      ),
    restoreMs:
      1000 *
      read.integer(
        `${at}.restoreSeconds`,
        http['restoreSeconds'],
        limits.restoreSeconds,
        standard.restoreSeconds,
      ),
    push: Object.freeze({
      path: pushPath,
      method: read.oneOf(`${at}.push.method`, push['method'], pushMethods, standard.method),
      headers: headersOf(read, `${at}.push.headers`, push['headers']),
      everyInterval: read.flag(`${at}.push.everyInterval`, push['everyInterval'], standard.everyInterval),
    }),
    container: containerWith(spec['template'], port),
  })
}

function headersOf(read: Reader, name: string, value: unknown): readonly HttpHeader[] {
  const given = objectsIn(value)
  if (given.length > limits.headers) read.invalid(name, value, `a list of at most ${limits.headers} headers`)
  return Object.freeze(
    given.map((header: Anything, index) => {
      const isName = typeof header['name'] === 'string' && new RegExp(headerName).test(header['name'])
      const isValue = typeof header['value'] === 'string' && new RegExp(headerValue).test(header['value'])
      if (!isName || !isValue)
        read.invalid(`${name}[${index}]`, header, 'a header with a valid name and value')
      else if (isOwnHeader(String(header['name']))) read.refuse('HttpHeaderReserved')
      return Object.freeze({ name: String(header['name']), value: String(header['value']) })
    }),
  )
}

function containerWith(template: unknown, port: number): string {
  const containers = objectsIn(objectIn(objectIn(template)['spec'])['containers'])
  const named = containers.find(it => objectsIn(it['ports']).some(each => each['containerPort'] === port))
  return typeof named?.['name'] === 'string' ? named['name'] : (containerNames(template)[0] ?? '')
}
