import { BlockList, isIP } from 'node:net'

type Net = readonly [net: string, prefix: number, family: 'ipv4' | 'ipv6']

/** Addresses of no pod: services of the node's provider, and groups. */
const ofNobody: readonly Net[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
]
/** Of whoever asks. */
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
 * The address of a pod, as its status has it, if a pod can have it; undefined: it has none that may be asked. Kubelets write
 * that status, so the root of one node decides what stands there.
 *
 * @param from who asks: in the network of a node loopback is the node. In that of a pod it is that pod, the operator's with its
 *   health and metrics; clusters without a network of pods have theirs there.
 */
export function podAddress(address: string | undefined, from: 'node' | 'pod'): string | undefined {
  const family = isIP(address ?? '')
  if (address === undefined || family === 0) return undefined
  const refused = from === 'node' ? notFromNodes : notFromPods
  return refused.check(address, family === 4 ? 'ipv4' : 'ipv6') ? undefined : address
}
