import { join } from 'node:path'
import { operatorElection } from '../api/election.ts'
import type { NodeCheck } from '../api/node-report.ts'
import { retireRequested } from '../api/node-report.ts'
import { parseSlotLease } from '../api/slot-lease.ts'
import { createBackoff } from '../kube/backoff.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { systemRandom as random } from '../kube/random.ts'
import { firstProcessesIn } from './container/container.ts'
import { hostProcFs as fs } from './container/process.ts'
import { endTree } from './criu/tree.ts'
import { fateAtLeave } from './leaving.ts'
import { failedCheck, recheck, sentinelCgroup } from './node.ts'
import { createInquiry } from './observe/inquiry.ts'
import { viewOf } from './observe/pod-view.ts'
import type { Resources } from './resources.ts'
import { retire } from './retire.ts'
import { createSentinelClient } from './sentinel/client.ts'
import { unguardAll } from './sentinel/unguard-all.ts'

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

/**
 * Removes everything from the node until the request is withdrawn; then the next agent starts from nothing. First the report
 * says that the sentinel is no voter, and has none. The operator takes the voters out of the Leases of primaries here, and
 * only then their guards end: otherwise the voters would state that they are silent.
 */
export async function leaveNode(
  resources: Pick<Resources, 'options' | 'caches' | 'urgentApi' | 'status' | 'log'>,
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
      if (!status.retired) {
        await letGo(resources, ended)
        await retire({
          ...{ ...options, fs, clock, random },
          ...{ cgroup: sentinelCgroup, signal: ended },
        })
      }
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

/** Ends the guards of all pods here, as their Leases permit it. */
async function letGo(
  {
    options,
    caches,
    urgentApi,
    status,
    log,
  }: Pick<Resources, 'options' | 'caches' | 'urgentApi' | 'status' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  const { node, runDirectory, operatorNamespace } = options
  const election = { ...operatorElection, namespace: operatorNamespace }
  const inquiry = createInquiry({ api: urgentApi, node, election, clock })
  const { pods, leases } = caches.reflectors
  await Promise.all([pods.synced(signal), leases.synced(signal)])
  const look = (uid: string) =>
    fateAtLeave(
      uid,
      caches.stores.pods.list().flatMap(pod => viewOf(pod, undefined) ?? []),
      caches.stores.leases.list().flatMap(lease => parseSlotLease(lease) ?? []),
    )
  const sentinel = createSentinelClient({ path: join(runDirectory, 'sentinel.sock'), clock, log })
  const nameOf = (uid: string) =>
    caches.stores.pods.list().find(({ metadata }) => metadata.uid === uid)?.metadata.name
  try {
    await unguardAll(sentinel, {
      ...{ clock, signal },
      async fateOf(uid) {
        const { fate, lease } = look(uid)
        // An administrator may have taken it out of its set.
        const isReleased = fate === 'Ends' && (await inquiry.presenceOf(uid, signal)) === 'Released'
        if (isReleased) return 'GoesOn'
        if (fate !== 'GoesOn' || lease === undefined) return fate
        // Our cache may be older than a takeover.
        const now = await inquiry.lease(lease, signal)
        const isOurs = now === undefined || (now.holder.uid === uid && (now.fence?.version ?? 0) === 0)
        return isOurs ? 'GoesOn' : 'Waits'
      },
      async end(uid) {
        await Promise.all((await firstProcessesIn(fs, uid)).map(process => endTree(sentinel, process)))
      },
      onWait(uids) {
        const names = uids.map(uid => nameOf(uid) ?? uid).sort()
        status.checks = [
          {
            ...{ name: 'retired', ok: false },
            message: `the Leases of ${names.join(', ')} still name voters`,
            cure: 'wait for the operator, which takes them out',
          },
        ]
        status.publish()
      },
    })
  } finally {
    sentinel.close()
  }
}
