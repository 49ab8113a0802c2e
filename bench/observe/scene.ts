import {
  type EndpointSlice,
  endpointSlices,
  type Pod,
  pods as podResource,
  services,
} from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { type NftMonitor, startNftMonitor } from '../node/nft-monitor.ts'
import { type Prober, startProber } from '../node/probe.ts'
import { counterPort } from '../objects.ts'
import { type Recording, record } from './recording.ts'

export const timeoutMs = 60_000
/** kube-proxy is idle again this long after its last sync; it syncs at most once a second. */
export const proxyRestMs = 1_500
/** Returns the node from which clients ask. */
export const clientNode = (context: BenchContext): string =>
  demand(demand(context.playground, 'a playground').nodes[0], 'a node')

export interface Scene {
  /** The Service's address. */
  readonly address: string
  readonly pods: Recording<Pod>
  readonly slices: Recording<EndpointSlice>
  readonly prober: Prober
  readonly nft: NftMonitor
  end(): Promise<void>
}

/** Opens a Service with a client in front of it and watches on everything between the two. */
export async function openScene(
  context: BenchContext,
  namespace: string,
  service: string,
  podSelector: string,
): Promise<Scene> {
  const { api, clock } = context
  const playground = demand(context.playground, 'a playground')
  const stop = new AbortController()
  const signal = AbortSignal.any([context.signal, stop.signal])
  const options = { namespace, now: clock.now, signal }
  const [pods, slices, { spec }] = await Promise.all([
    record(api, podResource, { ...options, labelSelector: podSelector }),
    record(api, endpointSlices, { ...options, labelSelector: `kubernetes.io/service-name=${service}` }),
    api.get(services, { namespace, name: service }, { signal }),
  ])
  const address = demand(spec?.clusterIP, 'a cluster IP')
  const prober = await startProber(playground, clientNode(context), address, counterPort, signal)
  const nft = startNftMonitor(playground, clientNode(context), clock.now)
  return {
    address,
    pods,
    slices,
    prober,
    nft,
    async end() {
      stop.abort()
      await Promise.all([prober.stop(), nft.stop()])
    },
  }
}
