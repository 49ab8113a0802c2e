import type { OpenedFile, Reach } from '../../checkpoint/images/reach.ts'
import { type Rights, reachableCapabilities } from './rights.ts'

const CAP_NET_ADMIN = 12n
const CAP_NET_RAW = 13n
const CAP_SYS_ADMIN = 21n

/** Kinds that anybody may have, and those that take a capability to make. Others are refused. */
const anybody = [
  ...['regular', 'pipe', 'fifo', 'inet', 'unix', 'eventfd', 'eventpoll', 'inotify', 'signalfd', 'netlink'],
  ...['timerfd', 'memfd', 'pidfd'],
]
const capabilityFor: Readonly<Record<string, bigint>> = {
  packet: CAP_NET_RAW,
  tun: CAP_NET_ADMIN,
  fanotify: CAP_SYS_ADMIN,
  bpf: CAP_SYS_ADMIN,
}
const rawSocketTypes: readonly number[] = [3, 10]

/**
 * What a restore would open or make that the container's own processes could not. One line each; empty: nothing.
 */
export function beyondReach({ files, ownNamespaces, oldImages }: Reach, holder: Rights): string[] {
  const has = (capability: bigint) => (reachableCapabilities(holder) & (1n << capability)) !== 0n
  const kindFault = ({ kind, socketType }: OpenedFile): string[] => {
    if (socketType !== undefined && rawSocketTypes.includes(socketType) && !has(CAP_NET_RAW))
      return ['a raw socket']
    if (anybody.includes(kind)) return []
    const capability = capabilityFor[kind]
    return capability !== undefined && has(capability) ? [] : [`an open file of kind ${kind}`]
  }
  return [
    ...ownNamespaces.map(name => `a ${name} namespace of its own`),
    ...oldImages.map(name => `the image ${name}`),
    ...files.flatMap(file => [
      ...kindFault(file),
      ...(file.paths.every(isPlain) ? [] : ['a file by a way around']),
    ]),
  ]
}

/** Links of /proc lead to files of others, and out of any root. No name that the kernel tells of a file has these parts. */
const linksOfProc = ['fd', 'fdinfo', 'root', 'cwd', 'exe', 'map_files', 'ns']

function isPlain(path: string): boolean {
  const parts = path.split('/').filter(part => part !== '')
  if (parts.includes('..')) return false
  return !(parts[0] === 'proc' && parts.some(part => linksOfProc.includes(part)))
}
