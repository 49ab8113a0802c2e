/** Runs one probe once. */
import { type Clock, systemClock } from '../kube/clock.ts'
import { probeGrpc } from './grpc.ts'
import type { Handler } from './handler.ts'
import { probeHttp } from './http.ts'
import { failure, type ProbeResult } from './result.ts'
import { probeTcp } from './tcp.ts'

export interface ProbeTarget {
  /** Address of the pod. */
  readonly address: string
  /** Runs a command in a container, with the rights of that container. Absent: commands are not supported. */
  readonly run?: RunCommand | undefined
}

export type RunCommand = (
  container: string,
  command: readonly string[],
  signal: AbortSignal,
) => Promise<ProbeResult>

export interface ProbeOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly clock?: Clock | undefined
}

export type Probe = (handler: Handler, target: ProbeTarget, options: ProbeOptions) => Promise<ProbeResult>

/** A timer later than this indicates a pause of this process, not of the app. */
const lateMs = 5

/**
 * Runs a probe as the kubelet would. Failures of the app are results.
 * @throws the signal's reason
 */
export const probe: Probe = async (handler, target, options) => {
  const { timeoutMs, signal, clock = systemClock } = options
  signal.throwIfAborted()
  // The agent has all rights on the node, so it must never run a template's command itself.
  if (handler.type === 'exec' && target.run === undefined)
    return { outcome: 'unsupported', message: 'the agent runs commands only in pods that were understudies' }

  const over = new AbortController()
  const onAbort = () => over.abort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const result = await Promise.race([
      run(handler, target, over.signal),
      expiry(timeoutMs, clock, over.signal),
    ])
    signal.throwIfAborted()
    return result
  } finally {
    signal.removeEventListener('abort', onAbort)
    over.abort()
  }
}

async function run(
  handler: Handler,
  { address, run }: ProbeTarget,
  signal: AbortSignal,
): Promise<ProbeResult> {
  switch (handler.type) {
    case 'exec':
      return run === undefined
        ? failure('the agent runs no commands here')
        : run(handler.container, handler.command, signal)
    case 'http':
      return probeHttp(handler, address, signal)
    case 'tcp':
      return probeTcp(handler, address, signal)
    case 'grpc':
      return probeGrpc(handler, address, signal)
  }
}

/**
 * Resolves with the failure after the timeout. If the timer fires late, this process was paused, and the answer may be
 * unread in a socket. The app gets that time back, once; otherwise, every pause of the agent would count as a death of
 * all apps of its node.
 */
async function expiry(timeoutMs: number, clock: Clock, signal: AbortSignal): Promise<ProbeResult> {
  const due = clock.monotonic() + timeoutMs
  try {
    await clock.sleep(timeoutMs, signal)
    const late = clock.monotonic() - due
    if (late > lateMs) await clock.sleep(Math.min(late, timeoutMs), signal)
  } catch {
    // The app has answered, or the caller has cancelled.
  }
  return failure(`no answer within ${timeoutMs} ms`)
}
