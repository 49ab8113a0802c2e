/** HTTP probes by the kubelet's rules. */

import { type IncomingMessage, type OutgoingHttpHeaders, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { messageOf } from '../kube/errors.ts'
import type { HttpHandler } from './handler.ts'
import { failure, type ProbeResult, success } from './result.ts'

/** Reads so much of an answer's body, as the kubelet does, and ignores the rest. */
const maxBodyBytes = 10 * 1024
const maxRedirects = 10
const redirects = new Set([301, 302, 303, 307, 308])

interface Target {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  readonly path: string
  /** The value of the Host header, if the template gives one. */
  readonly hostHeader: string | undefined
}

/**
 * Succeeds for status 200 to 399. Follows redirects on the same host only; a redirect to another host counts as
 * success. Does not verify certificates, uses no proxy, and opens a connection for each probe.
 */
export async function probeHttp(
  handler: HttpHandler,
  address: string,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { headers, hostHeader } = headersOf(handler)
  let target: Target = { ...handler, host: address, hostHeader }
  for (let followed = 0; ; followed += 1) {
    const answer = await get(target, headers, signal)
    if (typeof answer === 'string') return failure(answer)
    const { status, location } = answer
    const next = redirects.has(status) && location !== undefined ? follow(target, location) : undefined
    if (next === 'malformed') return failure(`status ${status} with an invalid location`)
    if (next === undefined || next === 'elsewhere')
      return status >= 200 && status < 400 ? success : failure(`status ${status}`)
    if (followed >= maxRedirects) return failure(`more than ${maxRedirects} redirects`)
    target = next
  }
}

function headersOf(handler: HttpHandler): { headers: OutgoingHttpHeaders; hostHeader: string | undefined } {
  const headers = new Map<string, string[]>([
    ['user-agent', ['kube-probe/understudy']],
    ['accept', ['*/*']],
    ['connection', ['close']],
  ])
  const given = new Set<string>()
  for (const { name, value } of handler.headers) {
    const key = name.toLowerCase()
    // The template's first value of a header replaces ours; it appends further ones.
    headers.set(key, given.has(key) ? [...(headers.get(key) ?? []), value] : [value])
    given.add(key)
  }
  const hostHeader = headers.get('host')?.at(-1)
  headers.delete('host')
  // A template omits the header by `Accept:` without a value.
  if (headers.get('accept')?.every(value => value === '')) headers.delete('accept')
  return { headers: Object.fromEntries(headers), hostHeader }
}

function follow(from: Target, location: string): Target | 'elsewhere' | 'malformed' {
  const base = `${from.scheme}://${authority(from)}`
  const url = URL.parse(location, base + from.path)
  if (url === null) return 'malformed'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'malformed'
  const here = new URL(base)
  if (url.hostname !== here.hostname) return 'elsewhere'
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return {
    scheme,
    host: from.host,
    port: Number(url.port) || (scheme === 'https' ? 443 : 80),
    path: url.pathname + url.search,
    // An absolute location names its host itself.
    hostHeader: URL.canParse(location) ? undefined : from.hostHeader,
  }
}

const authority = ({ host, port }: Pick<Target, 'host' | 'port'>): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`

interface Answer {
  readonly status: number
  readonly location: string | undefined
}

/** @returns the answer, or an error message for people. */
function get(target: Target, headers: OutgoingHttpHeaders, signal: AbortSignal): Promise<Answer | string> {
  return new Promise(resolve => {
    try {
      const send = target.scheme === 'https' ? requestHttps : requestHttp
      const request = send({
        host: target.host,
        port: target.port,
        path: target.path,
        headers: { ...headers, host: target.hostHeader ?? authority(target) },
        agent: false,
        signal,
        // Node would take the TLS server name from the header.
        ...(target.scheme === 'https'
          ? { rejectUnauthorized: false, servername: isIP(target.host) ? '' : target.host }
          : {}),
      })
      request.on('response', response =>
        read(response).then(
          () => {
            request.destroy()
            resolve({ status: response.statusCode ?? 0, location: response.headers.location })
          },
          (error: unknown) => resolve(messageOf(error)),
        ),
      )
      request.on('error', error => resolve(error.message))
      request.end()
    } catch (error) {
      // The header or path cannot be sent.
      resolve(messageOf(error))
    }
  })
}

async function read(response: IncomingMessage): Promise<void> {
  let bytes = 0
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length
    if (bytes >= maxBodyBytes) return
  }
}
