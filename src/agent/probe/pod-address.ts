import { BlockList, isIP } from 'node:net'

/** Addresses that mean the node itself, or services of its provider, to who asks from the node's network. */
const notPods = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
] as const)
  notPods.addSubnet(net, prefix, 'ipv4')
for (const [net, prefix] of [
  ['::', 127],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  notPods.addSubnet(net, prefix, 'ipv6')

/** The address of a pod, as its status has it, if a pod can have it; undefined: it has none that may be asked. */
export function podAddress(address: string | undefined): string | undefined {
  const family = isIP(address ?? '')
  if (address === undefined || family === 0) return undefined
  return notPods.check(address, family === 4 ? 'ipv4' : 'ipv6') ? undefined : address
}
