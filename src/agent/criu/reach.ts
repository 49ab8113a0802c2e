import type { OpenedFile, Reach } from '../../checkpoint/images/reach.ts'
import { beyondMaking } from './could-make.ts'
import { type Rights, reachableCapabilities } from './rights.ts'

const CAP_NET_ADMIN = 12n
const CAP_NET_RAW = 13n
const CAP_SYS_ADMIN = 21n

/** Kinds that any process may have, and kinds that require a capability. Other kinds are refused. */
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

/** Lists objects that the restore would open or make, but that the container's own processes could not. Empty: none. */
export function beyondReach(reach: Reach, holder: Rights): string[] {
  const { files, ownNamespaces, ghosts, oldImages } = reach
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
      ...(file.name === undefined || isPlain(file.name) ? [] : ['a file with an irregular path']),
      ...(((file.flags ?? 0) & makingOrEmptying) !== 0
        ? ['a file that the restore would create or truncate']
        : []),
      ...(file.addresses.some(climbs) ? ['a socket with .. in its path'] : []),
    ]),
    ...beyondMaking(ghosts, holder),
    ...immovable(reach),
  ]
}

/** O_CREAT, O_EXCL and O_TRUNC. The kernel drops them once a file is open, so no honest image has them. */
const makingOrEmptying = 0o1300

/**
 * Lists objects that no generation may contain, whatever node it comes from: no container can have them after a
 * restore.
 */
export function immovable({ files, inFlight }: Pick<Reach, 'files' | 'inFlight'>): string[] {
  const names = files.flatMap(({ name, addresses }) => [...(name === undefined ? [] : [name]), ...addresses])
  return [
    // CRIU opens it with all its rights, and sees the processes of another pid namespace than the dumped process did.
    ...(names.some(isOfProc) ? ['an open file of /proc'] : []),
    ...(inFlight > 0 ? ['unreceived descriptors in a socket'] : []),
  ]
}

/**
 * True if the kernel could report this name for an open file. CRIU skips the first byte, whatever it is, and lets the
 * kernel resolve the rest.
 */
const isPlain = (name: string): boolean =>
  name === '/' ||
  (name.startsWith('/') && partsOf(name.slice(1)).every(part => !['', '.', '..'].includes(part)))

/** Programs may name sockets freely (`./run//socket`), but no program needs `..`. */
const climbs = (address: string): boolean => partsOf(address).includes('..')

const isOfProc = (name: string): boolean =>
  partsOf(name).find(part => !['', '.', '..'].includes(part)) === 'proc'

const partsOf = (path: string): string[] => path.split('/')
