/** Applications that speak HTTP on port 8080: GET / adds one to their count, GET /peek returns it. */
import { get } from 'node:http'
import type { CheckpointSpec, PodTemplate } from '../src/api/backuppodset.ts'

export interface Specimen {
  readonly name: string
  readonly template: PodTemplate
  /** File name of the executable whose process the test kills. */
  readonly program: string
  readonly protocol: 'http' | 'redis'
  readonly port: number
  /** Adds one to the state. */
  readonly add: (ip: string) => Promise<void>
  /** The state as one number that only grows. */
  readonly read: (ip: string) => Promise<number>
  /** Fills it to its size, before anything is counted. */
  readonly prepare?: (ip: string) => Promise<void>
  /** Puts it under load while it is refreshed. @returns a function that ends the load and throws the load's error */
  readonly load?: (ip: string) => Promise<() => Promise<void>>
  /** Settings besides an interval of 1 s. */
  readonly checkpoint?: CheckpointSpec
  /** Time limit of each wait, ms. */
  readonly patienceMs?: number
  /**
   * Further checks of a state with this number.
   * @throws Error if one fails
   */
  readonly check?: (ip: string, value: number) => Promise<void>
}

/** Time limit of one answer. With several specimens at a time on few processors, one may get no CPU for seconds. */
export const patienceMs = 15_000

function httpGet(ip: string, port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(
      { host: ip, port, path, agent: false, signal: AbortSignal.timeout(patienceMs) },
      response => {
        let body = ''
        response.setEncoding('utf8').on('data', (text: string) => {
          body += text
        })
        response.on('end', () => resolve(body)).on('error', reject)
      },
    )
    request.on('error', cause =>
      reject(new Error(`http://${ip}:${port}${path}: ${cause.message}`, { cause })),
    )
  })
}

export type Answer = Readonly<Record<string, unknown>>

export const answerOf = async (ip: string, port: number, path: string) =>
  JSON.parse(await httpGet(ip, port, path)) as Answer

export function numberIn(answer: Readonly<Record<string, unknown>>, key: string): number {
  const value = answer[key]
  if (typeof value !== 'number') throw new Error(`no number "${key}" in ${JSON.stringify(answer)}`)
  return value
}

export const must = (what: string, seen: unknown, wanted: unknown): void => {
  if (seen !== wanted) throw new Error(`${what} is ${String(seen)} instead of ${String(wanted)}`)
}

type Pod = NonNullable<PodTemplate['spec']>
export type Container = Pod['containers'][number]

export const httpSpecimen = (
  name: string,
  program: string,
  container: Partial<Container>,
  more: {
    readonly pod?: Partial<Pod>
    readonly beside?: readonly Container[]
    readonly check?: Specimen['check']
  } = {},
): Specimen => ({
  name,
  program,
  protocol: 'http',
  port: 8080,
  template: {
    metadata: { labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      ...more.pod,
      containers: [
        {
          name: 'app',
          image: 'understudy.invalid/zoo:0.1.0',
          imagePullPolicy: 'IfNotPresent',
          ports: [{ containerPort: 8080 }],
          readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
          ...container,
        },
        ...(more.beside ?? []),
      ],
    },
  },
  add: async ip => {
    await httpGet(ip, 8080, '/')
  },
  read: async ip => numberIn(await answerOf(ip, 8080, '/peek'), 'count'),
  ...(more.check ? { check: more.check } : {}),
})
