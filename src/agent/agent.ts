import type { Logger } from 'pino'
import { systemClock as clock } from '../kube/clock.ts'
import {
  type Check,
  createHealthServer,
  createMetricsServer,
  eventLoopCheck,
  type HttpServer,
  openAll,
  syncedCheck,
} from '../kube/health.ts'
import { isToRetire, leaveNode } from './leave-node.ts'
import type { AgentOptions } from './options.ts'
import { keptCheck } from './report/kept-check.ts'
import { openResources, type Resources } from './resources.ts'
import { workOnNode } from './startup.ts'

const eventLoopLimitMs = 10_000

/**
 * Runs the agent of one node until the signal fires. Clones in pods, watches and redirects stay as they are then: the
 * sentinel keeps them, and the next agent takes them over.
 *
 * @throws Error if the cluster cannot be reached as configured, or a port is in use.
 */
export async function runAgent(
  options: AgentOptions,
  log: Logger,
  version: string,
  ended: AbortSignal,
): Promise<void> {
  const retiring = new AbortController()
  /** Ends all work, also when the agent has to leave the node. */
  const signal = AbortSignal.any([ended, retiring.signal])
  const resources = await openResources(options, log, version)
  const { caches, status } = resources
  using eventLoop = eventLoopCheck(eventLoopLimitMs)
  const servers = await openServers(resources, eventLoop)
  const background = new AbortController()
  const running = resources.run(background.signal)
  const retireIfAsked = () => {
    if (isToRetire(resources)) retiring.abort()
  }
  try {
    try {
      status.publish()
      // A retired agent must not begin to put things back.
      await caches.reflectors.reports.synced(signal)
      retireIfAsked()
      signal.throwIfAborted()
      caches.stores.reports.subscribe(retireIfAsked)
      await workOnNode(resources, signal)
    } catch (error) {
      if (!signal.aborted) throw error
    }
    if (retiring.signal.aborted && !ended.aborted) await leaveNode(resources, ended)
  } finally {
    await resources.flush()
    background.abort()
    await running
    await Promise.all([...servers.map(server => server.close()), resources.close()])
  }
}

function openServers(
  { options, metrics, caches, status, report, log }: Resources,
  eventloop: Check,
): Promise<readonly HttpServer[]> {
  const { healthPort, metricsPort, address: host } = options
  const memory = keptCheck(() => ({
    slots: status.slots,
    before: caches.stores.reports.get(options.node)?.status?.slots,
    checks: status.checks,
    told: report.slotsTold,
  }))
  const ready = { caches: syncedCheck(caches.reflectors), memory }
  return openAll([
    createHealthServer({ port: healthPort, host, live: { eventloop }, ready, clock, log }),
    createMetricsServer({ port: metricsPort, host, registry: metrics.registry, log }),
  ])
}
