import type { NodeReport } from '../api/node-report.ts'
import { stageLabel, stageReady } from '../api/pod-contract.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import type { Result } from '../kube/reconcile.ts'
import { type Node, nodes as nodeResource } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { createReports, staleMs } from '../slot/observe/reports.ts'

export interface StageControllerOptions {
  readonly api: Pick<Api, 'patch'>
  readonly reports: Store<NodeReport>
  readonly nodes: Store<Node>
  readonly queue: Queue
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/**
 * Labels the nodes on which memory can be saved and restored, as their agents report. Pods made for memory require the
 * label. It is removed when an agent has been silent for 30 s; running pods stay.
 */
export function createStageController(options: StageControllerOptions): Controller {
  const { api, nodes, queue, clock } = options
  const reports = createReports(options.reports, clock)
  options.reports.subscribe(change => {
    reports.note(change)
    queue.add(change.object.metadata.name)
  })
  nodes.subscribe(({ object }) => queue.add(object.metadata.name))
  const reconcile = async (name: string, { signal }: { signal: AbortSignal }): Promise<Result> => {
    const isReady = options.reports.get(name)?.status?.ready === true
    const left = staleMs - reports.silentFor(name)
    const isWanted = isReady && left > 0
    const isLabelled = nodes.get(name)?.metadata.labels?.[stageLabel] === stageReady
    if (isWanted !== isLabelled) {
      const body = { metadata: { labels: { [stageLabel]: isWanted ? stageReady : null } } }
      try {
        await api.patch(nodeResource, { name }, { type: 'merge', body }, { signal })
      } catch (error) {
        // A report outlives its node for a while.
        if (!isKubeError(error, 'NotFound')) throw error
      }
    }
    return isWanted ? { requeueAfterMs: left + 100 } : {}
  }
  return createController({
    name: 'stage',
    queue,
    reconcile,
    log: options.log,
    clock,
    random: options.random,
    metrics: options.controllerMetrics,
  })
}
