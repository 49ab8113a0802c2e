/** Decides on each request before anything else looks at it. */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** The header with which the page proves that it is this page: other sites cannot send it. */
export const tokenHeader = 'x-understudy-token'

export interface Keys {
  /** In the address that the user opens. */
  readonly invitation: string
  /** In the cookie that it is exchanged for. */
  readonly cookie: string
  /** In the page itself, for requests that change something. */
  readonly page: string
}

/** Cookies ignore ports, so that programs on two ports need two names. */
export const cookieName = (port: number): string => `understudy-${port}`

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

export function hasCookie({ cookie = '' }: IncomingHttpHeaders, port: number, wanted: string): boolean {
  const given = cookie
    .split(';')
    .map(each => each.trim().split('='))
    .filter(([name]) => name === cookieName(port))
  return given.some(([, value = '']) => isEqual(value, wanted))
}

export const hasToken = (headers: IncomingHttpHeaders, wanted: string): boolean => {
  const given = headers[tokenHeader]
  return typeof given === 'string' && isEqual(given, wanted)
}

/** Takes as long for any wrong text of the right length. */
export function isEqual(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
