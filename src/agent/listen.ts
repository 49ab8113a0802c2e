/** Has the sentinel of this node listen for heartbeats, and puts that into the report. */
import { isAgentError } from '../api/agent-errors.ts'
import type { Heartbeats } from '../api/node-report.ts'
import type { Clock } from '../kube/clock.ts'
import type { Log } from '../kube/log.ts'
import type { Core } from './core.ts'
import type { NodeStatus } from './report/node-status.ts'
import type { SentinelClient } from './sentinel/client.ts'
import type { HeartbeatKey } from './transfer/heartbeat-key.ts'

export interface ListenOptions {
  readonly sentinel: Pick<SentinelClient, 'heartbeats' | 'tellVotes'>
  readonly port: number
  readonly key: Pick<HeartbeatKey, 'publicKey'>
  readonly core: Pick<Core, 'listens'>
  readonly status: Pick<NodeStatus, 'heartbeats' | 'publish'>
  /** Id of the sentinel that runs now. */
  readonly present: () => string
  readonly clock: Clock
  readonly log: Log
}

const checkMs = 5_000

/** Asks each sentinel once, and again after a failure, until the signal fires. */
export async function listen(options: ListenOptions, signal: AbortSignal): Promise<void> {
  const { present, clock } = options
  let asked: string | undefined
  let problem: string | undefined
  while (!signal.aborted) {
    const now = present()
    if (now !== asked) {
      const found = await ask(options, signal)
      if (signal.aborted) return
      if (found === undefined) asked = now
      // A sentinel of an earlier version refuses again and again, until it is replaced.
      else if (found !== problem)
        options.log.warn({ problem: found }, 'the sentinel does not listen for heartbeats')
      problem = found
    }
    await clock.sleep(checkMs, signal).catch(() => undefined)
  }
}

/** Returns the problem; undefined: it listens. */
async function ask(options: ListenOptions, signal: AbortSignal): Promise<string | undefined> {
  const { sentinel, key, core, status, log } = options
  const publish = (heartbeats: Heartbeats | null) => {
    core.listens(heartbeats?.run)
    status.heartbeats = heartbeats
    status.publish()
  }
  try {
    const { port, run } = await sentinel.heartbeats(options.port, signal)
    publish({ port, run, key: key.publicKey })
    // The core has forgotten earlier news, if they could be from another run.
    await sentinel.tellVotes(signal)
    log.info({ port, run }, 'the sentinel listens for heartbeats')
    return undefined
  } catch (error) {
    if (signal.aborted) return undefined
    if (!isAgentError(error)) throw error
    // A connection that broke says nothing about the sentinel.
    if (isAgentError(error, 'SentinelRefused')) publish(null)
    return error.message
  }
}
