/** The kinds of nodes that `npm run portability` tries: data only. A new kind is a new entry. */

export interface NodeKind {
  /** Its name on the command line, and the beginning of the names of its nodes. */
  readonly name: string
  readonly title: string
  /** Release of Debian from which the kernel, systemd and all other packages come. */
  readonly suite: 'bookworm' | 'trixie'
  /** Origin of containerd: the package of the release, or the build that the playground's nodes have. */
  readonly containerd: 'distribution' | 'playground'
}

export const kinds: readonly NodeKind[] = [
  { name: 'debian-13', title: 'Debian 13', suite: 'trixie', containerd: 'distribution' },
  {
    name: 'debian-13-containerd-2',
    title: 'Debian 13, with containerd 2',
    suite: 'trixie',
    containerd: 'playground',
  },
  { name: 'debian-12', title: 'Debian 12', suite: 'bookworm', containerd: 'distribution' },
]

/**
 * The names of the nodes of a kind. A hot backup is useful on another node than its primary, so there are two; they are alike, since memory
 * does not move between all kernels and processors.
 */
export const nodeNames = ({ name }: NodeKind): readonly string[] => [`${name}-a`, `${name}-b`]

/** Packages of a node: those of a usual server, and the requirements of the kubelet and kube-proxy. */
export const packages: readonly string[] = [
  ...['systemd', 'systemd-sysv', 'udev', 'dbus', 'kmod', 'linux-image-cloud-amd64', 'apparmor'],
  ...['containerd', 'runc', 'containernetworking-plugins', 'conntrack', 'iptables', 'nftables', 'socat'],
  ...['ca-certificates', 'curl', 'ethtool', 'iproute2', 'mount', 'openssh-server', 'procps', 'util-linux'],
]
