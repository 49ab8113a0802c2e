/** One replica of the operator: its caches, its election and its controller, composed as in the real one. */
import { operatorElection } from '../../../src/api/election.ts'
import { failurePauses } from '../../../src/backuppodset/action-retries.ts'
import { createSetController } from '../../../src/backuppodset/controller.ts'
import type { SetMetrics } from '../../../src/backuppodset/metrics.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import { createCacheSet } from '../../../src/kube/cache-set.ts'
import { createConsistencyStore } from '../../../src/kube/consistency.ts'
import { createElector } from '../../../src/kube/election.ts'
import { fenced } from '../../../src/kube/fence.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import { createQueue } from '../../../src/kube/queue.ts'
import type { Random } from '../../../src/kube/random.ts'
import { createCaches } from '../../../src/operator/caches.ts'
import type { WakeKeys } from '../../../src/slot/gate/token.ts'
import type { WakeReply, WakeRequest } from '../../../src/slot/gate/wake.ts'
import { createMemoryStore } from '../../../src/state-store/memory.ts'
import { createWriteBehind } from '../../../src/state-store/write-behind.ts'
import { followTraces } from '../../../src/traces/follow.ts'
import type { TraceSink } from '../../../src/traces/span.ts'
import { createMovers } from './movers.ts'
import type { Party, VirtualTime } from './virtual-time.ts'

export interface OperatorOptions {
  readonly party: Party
  readonly api: Api
  readonly time: VirtualTime
  readonly random: Random
  readonly wakeKeys: WakeKeys
  /** It carries out Migrations and drains, too. */
  readonly moves: boolean
  readonly wake: (request: WakeRequest) => Promise<WakeReply>
  readonly trace?: TraceSink
  readonly signal: AbortSignal
}

/** As long as the real operator's first wait. */
const freshMs = 5_000
const nothing = () => undefined
const noMetrics: SetMetrics = {
  ...{ acted: nothing, woke: nothing, counted: nothing, forget: nothing, reset: nothing },
}

export async function runModelOperator(options: OperatorOptions): Promise<void> {
  const { party, api, time, random, moves, signal } = options
  const clock = time.clockOf(party)
  // Without moves, the model has no Node objects, so none of its nodes has a label or a taint.
  const cacheSet = createCacheSet({ api, clock, random, log })
  const caches = createCaches(cacheSet, { memoryNamespaces: 'all' })
  const { permitted: _, ...mirrored } = caches.stores
  const mayWrite = () => elector.isLeader()
  const leaderApi = fenced(api, mayWrite)
  const queue = createQueue({ clock, name: 'backuppodset', backoff: failurePauses, random })
  const consistency = createConsistencyStore({ cache: cacheSet.view, clock, log })
  const stateStore = createWriteBehind(createMemoryStore(clock), { clock, log })
  const controller = createSetController({
    ...caches.stores,
    ...{ api: leaderApi, urgentApi: leaderApi, mayWrite },
    reign: () => elector.reign(),
    revisionsKnown: caches.stores.revisions.hasSynced,
    instance: party.name,
    missingForMemory: caches.missingForMemory,
    stateBudget: 2 ** 26,
    ...{ consistency, queue, stateStore },
    recorder: { record: nothing, flush: async () => 0, close: () => {} },
    settings: { wakerImage: 'waker', wakeKeys: options.wakeKeys },
    metrics: noMetrics,
    workers: 2,
    wake: options.wake,
    // The pods' addresses do not exist on this machine.
    reach: async () => undefined,
    ...{ clock, random, log },
  })
  const elector = createElector({
    ...{ api, clock, random, log },
    ...{ ...operatorElection, identity: party.name },
  })
  const traces =
    options.trace && followTraces({ ...caches.stores, leads: mayWrite, clock, trace: options.trace })
  const movers = moves ? createMovers({ caches, api: leaderApi, clock, random, log }) : undefined
  const running = cacheSet.run(signal)
  try {
    await Promise.all(Object.values(mirrored).map(cache => cache.synced(signal)))
    const lead = async (stop: AbortSignal, lost: AbortSignal) => {
      await cacheSet.freshen(freshMs, stop)
      traces?.catchUp()
      await Promise.all([controller.run(stop, lost), movers?.run(stop, lost)])
    }
    await elector.run({ onStarted: lead, signal })
  } finally {
    queue.shutdown()
    movers?.close()
    await running
  }
}
