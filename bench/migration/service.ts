import { type Pod, services } from '../../src/kube/resources.ts'
import { redisPort } from '../../zoo/redis.ts'
import { type BenchContext, demand } from '../bench.ts'
import { type Prober, startProber } from '../node/probe.ts'

/** Creates a Service in front of redis, and a client of it on the first node. */
export async function clientOfService(
  { api, playground: given, signal }: BenchContext,
  namespace: string,
  name: string,
  selector: Readonly<Record<string, string>>,
): Promise<Prober> {
  const playground = demand(given, 'a playground')
  const { spec } = await api.create(
    services,
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { selector, ports: [{ name: 'redis', port: redisPort, targetPort: redisPort }] },
    },
    { namespace, signal },
  )
  return startProber(
    playground,
    demand(playground.nodes[0], 'a node'),
    demand(spec?.clusterIP, 'a cluster IP'),
    redisPort,
    signal,
    'redis',
  )
}

export const addressOf = (pod: Pod): string => demand(pod.status?.podIP, 'an address')
