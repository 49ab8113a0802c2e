import { BlockList, isIP } from 'node:net'

type Net = readonly [net: string, prefix: number, family: 'ipv4' | 'ipv6']

/** Addresses that no pod has: link-local ones such as the cloud provider's metadata service, and multicast. */
const ofNobody: readonly Net[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
]
/** Loopback: the client itself. */
const ofOurselves: readonly Net[] = [
  ['127.0.0.0', 8, 'ipv4'],
  ['::1', 128, 'ipv6'],
]

function blockListOf(nets: readonly Net[]): BlockList {
  const list = new BlockList()
  for (const net of nets) list.addSubnet(...net)
  return list
}

const notFromPods = blockListOf(ofNobody)
const notFromNodes = blockListOf([...ofNobody, ...ofOurselves])

/**
 * Returns the address in a pod's status if a pod can have it; undefined: there is none that we may connect to. Kubelets
 * write that status, so root on any node controls the value.
 *
 * @param from the client's network. On a node, loopback is the node itself. In a pod it is that pod: for the operator
 *   only its health and metrics, and clusters without a pod network have their pods there.
 */
export function podAddress(address: string | undefined, from: 'node' | 'pod'): string | undefined {
  const family = isIP(address ?? '')
  if (address === undefined || family === 0) return undefined
  const refused = from === 'node' ? notFromNodes : notFromPods
  return refused.check(address, family === 4 ? 'ipv4' : 'ipv6') ? undefined : address
}
