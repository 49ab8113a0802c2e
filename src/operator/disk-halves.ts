import { areDiskHalvesFor, deriveDiskHalf, diskHalfAnnotation, sealDiskHalf } from '../api/disk-half.ts'
import { type NodeReport, nodeReports } from '../api/node-report.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import type { Result } from '../kube/reconcile.ts'
import type { Store } from '../kube/store.ts'
import { type WakeKeys, wakeKeyId } from '../slot/gate/token.ts'

export interface DiskHalvesOptions {
  readonly api: Pick<Api, 'patch'>
  readonly reports: Store<NodeReport>
  /** Each makes one half. Agents cannot read them. */
  readonly wakeKeys: WakeKeys
  readonly queue: Queue
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** Tells each node its half of the keys for generations on its disk, encrypted for the key in the node's report. */
export function createDiskHalves(options: DiskHalvesOptions): Controller {
  const { api, reports, wakeKeys, queue, clock, random, log } = options
  const keyIds = wakeKeys.map(wakeKeyId)
  reports.subscribe(({ object }) => queue.add(object.metadata.name))
  const reconcile = async (node: string, { signal }: { signal: AbortSignal }): Promise<Result> => {
    const report = reports.get(node)
    const publicKey = report?.status?.diskKey
    if (publicKey === undefined) return {}
    if (areDiskHalvesFor(report?.metadata.annotations?.[diskHalfAnnotation], keyIds, publicKey)) return {}
    const sealed: string[] = []
    for (const key of wakeKeys) {
      const text = await sealDiskHalf(deriveDiskHalf(key, node), { node, keyId: wakeKeyId(key), publicKey })
      if (text === undefined) {
        log.warn({ node }, 'the NodeReport has a disk key that is none')
        return {}
      }
      sealed.push(text)
    }
    const body = { metadata: { annotations: { [diskHalfAnnotation]: sealed.join(',') } } }
    try {
      await api.patch(nodeReports, { name: node }, { type: 'merge', body }, { signal })
      log.info({ node }, 'encrypted the half of the disk keys for a node')
    } catch (error) {
      // The report is gone; the next one has a key again.
      if (!isKubeError(error, 'NotFound')) throw error
    }
    return {}
  }
  return createController({
    ...{ name: 'disk-half', queue, reconcile, log, clock, random },
    metrics: options.controllerMetrics,
  })
}
