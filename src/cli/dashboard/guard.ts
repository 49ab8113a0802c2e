/** Decides on each request before anything else looks at it. */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** The names under which a browser may ask for the page. */
const hostsOf = (port: number): readonly string[] => [
  `127.0.0.1:${port}`,
  `localhost:${port}`,
  `[::1]:${port}`,
]

/**
 * Returns why a request is refused, or undefined. A page of another site that has its own name resolved to this machine sends
 * its name as Host; one that sends a request across sites is named in Origin.
 */
export function refusalOf(headers: IncomingHttpHeaders, port: number): string | undefined {
  const { host = '', origin } = headers
  if (!hostsOf(port).includes(host))
    return 'this name is not one of the program: open the address that it has printed'
  if (origin !== undefined && origin !== `http://${host}`) return 'the request is from another site'
  const site = headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none' || isVisit(headers)
    ? undefined
    : 'the request is from another site'
}

/** A click on the printed address in another program's window. The answer has nothing that the other site can read. */
const isVisit = (headers: IncomingHttpHeaders): boolean =>
  headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'

/**
 * True if the request has the key of this run. It is no cookie: browsers send cookies of 127.0.0.1 to every port of it, so that
 * programs of other users would get them.
 */
export function hasKey({ authorization = '' }: IncomingHttpHeaders, key: string): boolean {
  const [scheme, given = ''] = authorization.split(' ')
  return scheme === 'Bearer' && isEqual(given, key)
}

/** Takes as long for any wrong text of the right length. */
function isEqual(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
