/** Parses a template's probes once: fills in defaults, resolves names of ports, and converts times to milliseconds. */
import type { V1Container, V1Probe } from '@kubernetes/client-node'
import type { Wire } from '../kube/object.ts'

export interface HttpHandler {
  readonly type: 'http'
  readonly scheme: 'http' | 'https'
  readonly port: number
  /** Path and query, as in a request line. */
  readonly path: string
  readonly headers: readonly { readonly name: string; readonly value: string }[]
}

export interface TcpHandler {
  readonly type: 'tcp'
  readonly port: number
}

export interface GrpcHandler {
  readonly type: 'grpc'
  readonly port: number
  /** Empty: the whole server. */
  readonly service: string
}

export interface ExecHandler {
  readonly type: 'exec'
  /** Name of the container that runs the command. */
  readonly container: string
  readonly command: readonly string[]
}

export type Handler = HttpHandler | TcpHandler | GrpcHandler | ExecHandler

/** When a probe runs, and how many of its results count. */
export interface Timing {
  readonly initialDelayMs: number
  readonly periodMs: number
  readonly timeoutMs: number
  readonly successThreshold: number
  readonly failureThreshold: number
}

export interface ParsedProbe {
  readonly handler: Handler
  readonly timing: Timing
}

/** The parts of a container that parsing needs: the names of its ports. */
export type ProbedContainer = Pick<Wire<V1Container>, 'name' | 'ports'>

/**
 * Returns a probe of this container, or an error message for people (no port of the container has this name, or the
 * kind of handler is unknown).
 */
export function parseProbe(probe: Wire<V1Probe>, container: ProbedContainer): ParsedProbe | string {
  const handler = parseHandler(probe, container)
  if (typeof handler === 'string') return `container ${container.name}: ${handler}`
  // The API server fills in these defaults for pods; the template of a set is as the user wrote it.
  const seconds = (value: number | undefined, otherwise: number) => (value || otherwise) * 1000
  return {
    handler,
    timing: {
      initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1000,
      periodMs: seconds(probe.periodSeconds, 10),
      timeoutMs: seconds(probe.timeoutSeconds, 1),
      successThreshold: probe.successThreshold || 1,
      failureThreshold: probe.failureThreshold || 3,
    },
  }
}

/** Agents are in the network of their node, which gives access to more than the pod network does. */
const elsewhere = 'the probe names a host, and agents probe only the pod itself'

function parseHandler(probe: Wire<V1Probe>, container: ProbedContainer): Handler | string {
  if (probe.exec) return { type: 'exec', container: container.name, command: probe.exec.command ?? [] }
  if (probe.httpGet) {
    const { host, path, scheme = 'HTTP', httpHeaders = [] } = probe.httpGet
    if (host) return elsewhere
    const port = portOf(probe.httpGet.port, container)
    if (typeof port === 'string') return port
    const lower = scheme.toLowerCase()
    if (lower !== 'http' && lower !== 'https') return `unknown scheme ${scheme}`
    return {
      type: 'http',
      scheme: lower,
      port,
      path: requestPath(path),
      headers: httpHeaders,
    }
  }
  if (probe.tcpSocket) {
    const port = portOf(probe.tcpSocket.port, container)
    if (typeof port === 'string') return port
    if (probe.tcpSocket.host) return elsewhere
    return { type: 'tcp', port }
  }
  if (probe.grpc) {
    const port = portOf(probe.grpc.port, container)
    if (typeof port === 'string') return port
    return { type: 'grpc', port, service: probe.grpc.service ?? '' }
  }
  return 'the probe has no known handler'
}

/** Returns the number of a port given by number, by the name of a port of the container, or by a number in quotes. */
export function portOf(port: unknown, container: ProbedContainer): number | string {
  if (typeof port === 'string') {
    const named = container.ports?.find(({ name }) => name === port)
    if (named) return named.containerPort
  }
  const number = typeof port === 'string' && /^\d{1,5}$/.test(port) ? Number(port) : port
  if (typeof number !== 'number' || !Number.isInteger(number)) return `no port is named ${String(port)}`
  return number > 0 && number < 65536 ? number : `no port has the number ${number}`
}

/**
 * Returns path and query of the user's `path`, which the kubelet parses as a URL, replacing scheme and host. Escapes
 * characters that are invalid in a request line.
 */
function requestPath(path: string | undefined): string {
  if (!path) return '/'
  const reference = /^\/(?!\/)/.test(path) ? path.replace(/#.*$/s, '') : fromUrl(path)
  // toWellFormed comes first: encodeURIComponent throws for a lone surrogate.
  return reference.toWellFormed().replace(/[^\x21-\x7e]/gu, character => encodeURIComponent(character))
}

function fromUrl(path: string): string {
  const url = URL.parse(path, 'http://probe/')
  return url === null ? `/${path}` : url.pathname + url.search
}
