/** Sends traffic through the Service during the whole story and records the results. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from '../src/kube/api.ts'
import { styled } from './screen.ts'

/** Identifies the demo's requests in the pods' access logs. */
export const userAgent = 'understudy-demo'

export interface Probe {
  /** ms since the start of this process. */
  readonly at: number
  readonly ms: number
  readonly error?: string | undefined
  /** The count in a counter's answer. */
  readonly count?: number | undefined
}

export interface Traffic extends AsyncDisposable {
  readonly probes: readonly Probe[]
}

const periodMs = 50

/** Sends requests from inside a node of the playground; `wrap` makes an argv run in that node's network. */
export function trafficFromNode(wrap: (argv: readonly string[]) => string[], url: string): Traffic {
  const prober = new URL('../playground/prober.ts', import.meta.url).pathname
  const [program = '', ...args] = wrap([process.execPath, prober, url, String(periodMs), userAgent])
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  const probes: Probe[] = []
  const started = new Promise<void>((resolve, reject) => {
    child.on('spawn', resolve)
    child.on('error', reject)
  })
  // Disposal reports this error. Without a handler here, a missing program would end this process.
  started.catch(() => {})
  const gone = new Promise<void>(resolve => child.on('exit', () => resolve()))
  createInterface({ input: child.stdout }).on('line', line => {
    const { ms, error, body } = JSON.parse(line) as { ms: number; error?: string; body?: string }
    probes.push({ at: performance.now(), ms, error, count: countIn(body) })
  })
  return {
    probes,
    async [Symbol.asyncDispose]() {
      await started
      child.stdin.end()
      await gone
    },
  }
}

const countIn = (body: string | undefined): number | undefined => {
  const count = /"count":\s*(\d+)/.exec(body ?? '')?.[1]
  return count === undefined ? undefined : Number(count)
}

/** Sends requests through the API server's proxy, for clusters whose Services are not reachable from here. */
export function trafficThroughApi(api: Api, namespace: string, service: string): Traffic {
  const probes: Probe[] = []
  const stop = new AbortController()
  const loop = (async () => {
    for (;;) {
      const started = performance.now()
      const { error, body } = await api
        .request('GET', `/api/v1/namespaces/${namespace}/services/${service}:80/proxy/`, {
          signal: stop.signal,
          timeoutMs: 2_000,
        })
        .then(
          answer => ({ error: undefined, body: JSON.stringify(answer) }),
          (reason: Error) => ({ error: reason.message, body: undefined }),
        )
      if (stop.signal.aborted) return
      const now = performance.now()
      probes.push({ at: now, ms: now - started, error, count: countIn(body) })
      await sleep(periodMs)
    }
  })()
  return {
    probes,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await loop
    },
  }
}

/** Renders one line: the last probes as a strip, then the sums. */
export function trafficLine(probes: readonly Probe[]): string {
  if (probes.length === 0) return ''
  const strip = probes
    .slice(-30)
    .map(({ error }) => (error === undefined ? styled.good('·') : styled.bad('x')))
    .join('')
  const failed = probes.filter(({ error }) => error !== undefined).length
  return `  traffic ${strip} ${probes.length - failed} answered, ${failed} failed`
}

/** Returns a client's view of a period. `gapMs`: the longest time between two answers. */
export function seenBetween(probes: readonly Probe[], from: number, to: number) {
  const within = probes.filter(({ at }) => at >= from && at <= to)
  const answered = within.filter(({ error }) => error === undefined)
  const times = [from, ...answered.map(({ at }) => at), to]
  const gapMs = Math.max(...times.slice(1).map((at, i) => at - (times[i] ?? at)))
  return { answered: answered.length, failed: within.length - answered.length, gapMs }
}
