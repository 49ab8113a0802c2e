import type { NodeCheck } from '../api/node-report.ts'
import { retireRequested } from '../api/node-report.ts'
import { createBackoff } from '../kube/backoff.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { systemRandom as random } from '../kube/random.ts'
import { hostProcFs } from './container/process.ts'
import { failedCheck, recheck, sentinelCgroup } from './node.ts'
import type { Resources } from './resources.ts'
import { retire } from './retire.ts'

const retiredCheckMs = 1_000
const left: NodeCheck = {
  name: 'retired',
  ok: false,
  message: 'no part of the agents is left on this node',
  cure: `remove the installation, or remove the annotation ${retireRequested} from this report`,
}

/**
 * Returns true if the agent has to leave this node; undefined if there is no report. A missing report is no request to
 * leave: if the kind is deleted, the report goes before this agent does.
 */
export function isToRetire({ options, caches }: Pick<Resources, 'options' | 'caches'>): boolean | undefined {
  const own = caches.stores.reports.get(options.node)
  return own && own.metadata.annotations?.[retireRequested] !== undefined
}

/** Removes everything from the node until the request is withdrawn; then the next agent starts from nothing. */
export async function leaveNode(
  resources: Pick<Resources, 'options' | 'caches' | 'status' | 'log'>,
  ended: AbortSignal,
): Promise<void> {
  const { options, status, log } = resources
  log.warn('removing everything that agents have put on this node')
  const pauses = createBackoff(recheck, random)
  status.slots = []
  status.budgets = () => ({})
  status.heartbeats = null
  status.run = undefined
  status.checks = [
    { name: 'retired', ok: false, message: 'the agent is leaving this node', cure: 'wait for the agent' },
  ]
  status.publish()
  while (!ended.aborted && isToRetire(resources) !== false) {
    try {
      if (!status.retired)
        await retire({
          ...{ ...options, fs: hostProcFs, clock, random, log },
          ...{ cgroup: sentinelCgroup, signal: ended },
        })
      status.retired = true
      status.checks = [left]
    } catch (error) {
      if (ended.aborted) return
      log.error({ err: error }, 'cannot remove everything')
      status.checks = [failedCheck('retired', error)]
    }
    status.publish()
    await clock.sleep(status.retired ? retiredCheckMs : pauses.next(), ended).catch(() => undefined)
  }
}
