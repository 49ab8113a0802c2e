/** Opens the parts of an agent that live as long as its process: connections, identity, caches, report and metrics. */
import { join } from 'node:path'
import type { Logger } from 'pino'
import { metricName } from '../api/metrics.ts'
import { type NodeReport, nodeReports, parseReport } from '../api/node-report.ts'
import type { SlotKey } from '../api/slot-key.ts'
import { groupSelector, parseSlotLease, type SlotLease } from '../api/slot-lease.ts'
import { createApi } from '../kube/api.ts'
import type { Api } from '../kube/api-types.ts'
import { createBuildInfo } from '../kube/build-info.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { loadConnection } from '../kube/connection.ts'
import { keepWarm } from '../kube/keep-warm.ts'
import { createMetrics } from '../kube/metrics.ts'
import { systemRandom as random } from '../kube/random.ts'
import { createRecorder, type Recorder } from '../kube/recorder.ts'
import { createReflector, type Reflector, type ReflectorOptions } from '../kube/reflector.ts'
import { type Lease, leases as leaseResource, type Pod, pods as podResource } from '../kube/resources.ts'
import { createStore, type Store } from '../kube/store.ts'
import { openTraces } from '../traces/open.ts'
import type { TraceQueue } from '../traces/queue.ts'
import type { AgentOptions } from './options.ts'
import { thisMachine } from './preflight/machine.ts'
import { createNodeStatus, type NodeStatus } from './report/node-status.ts'
import { ownNode } from './report/own-node.ts'
import { createPrecedence, type Precedence } from './report/precedence.ts'
import { createReportWriter, type ReportWriter } from './report/report.ts'
import { createHeartbeatKey, type HeartbeatKey } from './transfer/heartbeat-key.ts'
import { type Identity, loadIdentity } from './transfer/identity.ts'

export interface Resources {
  readonly options: AgentOptions
  /** Of this agent. */
  readonly version: string
  readonly log: Logger
  readonly metrics: ReturnType<typeof createMetrics>
  readonly api: Api
  /** For deaths and promotions: with connections of its own. */
  readonly urgentApi: Api
  readonly precedence: Precedence
  readonly identity: Identity
  readonly heartbeatKey: HeartbeatKey
  readonly caches: Caches
  readonly recorder: Recorder
  /** Undefined: no traces are sent. */
  readonly traces: TraceQueue | undefined
  readonly report: ReportWriter
  readonly status: NodeStatus
  /** Keeps caches, report and connections up to date until the signal fires. */
  run(signal: AbortSignal): Promise<unknown>
  /** Writes the events that are pending, and ends the recorder. */
  flush(): Promise<void>
  close(): Promise<unknown>
}

/** The agent's caches of objects of the API server. */
export interface Caches {
  readonly stores: {
    /** Only pods of this node that carry our label. */
    readonly pods: Store<Pod>
    readonly leases: Store<Lease>
    readonly reports: Store<NodeReport>
  }
  readonly reflectors: Readonly<Record<'pods' | 'leases' | 'reports', Reflector>>
  leaseOf(slot: SlotKey): SlotLease | undefined
}

const flushMs = 2_000
/** Deaths and promotions use connections that are already open. The others have the reports, which go over an open one every ten seconds. */
const urgentConnections = 2

/** @throws Error if the cluster cannot be reached as configured. */
export async function openResources(options: AgentOptions, log: Logger, version: string): Promise<Resources> {
  const metrics = createMetrics()
  createBuildInfo(metrics.registry, metricName('build_info'), { component: 'agent', version })
  const connection = await loadConnection({ kubeconfig: options.kubeconfig })
  const shared = { connection, metrics: metrics.api, userAgent: `understudy-agent/${version}`, log }
  const api = createApi({ ...shared, connections: 8 })
  const urgentApi = createApi({ ...shared, connections: urgentConnections })
  const identity = await loadIdentity(join(options.stateDirectory, 'identity'))
  const { node } = options
  const heartbeatKey = createHeartbeatKey(node, identity.key)
  const owner = (signal: AbortSignal) => ownNode(api, node, signal)
  const precedence = createPrecedence(clock)
  const { giveWay } = precedence
  const report = createReportWriter({ api, node, owner, clock, log, giveWay })
  const address = `${options.address}:${options.peerPort}`
  const about = { version, address, fingerprint: identity.fingerprint, signs: true, clones: true }
  const status = createNodeStatus(about, await thisMachine(''), report)
  const caches = createCaches(node, { api, clock, random, log, metrics: metrics.reflector })
  const recorder = createRecorder({
    ...{ api, component: 'understudy-agent', instance: node, clock, log, metrics: metrics.recorder, giveWay },
  })
  const traces = await openTraces(options, {
    ...{ service: 'understudy-agent', instance: node, version, registry: metrics.registry, clock, log },
  })
  return {
    ...{
      options,
      version,
      log,
      metrics,
      api,
      urgentApi,
      precedence,
      identity,
      heartbeatKey,
      caches,
      recorder,
      traces,
      report,
      status,
    },
    run: signal =>
      Promise.all([
        ...Object.values(caches.reflectors).map(reflector => reflector.run(signal)),
        report.run(signal),
        traces?.run(signal),
        keepWarm({ api: urgentApi, connections: urgentConnections, clock, log }, signal),
      ]),
    async flush() {
      await recorder.flush(AbortSignal.timeout(flushMs))
      recorder.close()
    },
    close: () => Promise.all([api.close(), urgentApi.close()]),
  }
}

function createCaches(
  node: string,
  common: Pick<ReflectorOptions<Pod>, 'api' | 'clock' | 'random' | 'log' | 'metrics'>,
): Caches {
  const stores = {
    pods: createStore<Pod>(),
    leases: createStore<Lease>(),
    reports: createStore<NodeReport>(),
  }
  const ours = { labelSelector: groupSelector }
  const onNode = { fieldSelector: `spec.nodeName=${node}`, ...ours }
  return {
    stores,
    reflectors: {
      pods: createReflector({ ...common, resource: podResource, store: stores.pods, query: onNode }),
      leases: createReflector({ ...common, resource: leaseResource, store: stores.leases, query: ours }),
      reports: createReflector({
        ...common,
        resource: nodeReports,
        store: stores.reports,
        transform: parseReport,
      }),
    },
    leaseOf({ namespace, name }) {
      const lease = stores.leases.get(`${namespace}/${name}`)
      return lease && parseSlotLease(lease)
    },
  }
}
