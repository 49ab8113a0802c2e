/** A cluster's addresses, names and files. The plan is pure: the same inputs give the same plan. */

export interface MachinePlan {
  /** `cp`, `n1`, `n2`, ... Also the machine's host name. */
  readonly name: string
  /** Name of the network namespace and cgroup: `us-CLUSTER-MACHINE`. */
  readonly label: string
  readonly address: string
  /** Fixed, so that the neighbours' old ARP entries are right when a machine comes back. */
  readonly mac: string
  /** The link's end on the bridge; its other end is eth0 in the machine. At most 15 characters. */
  readonly link: string
}

export interface NodePlan extends MachinePlan {
  readonly podCidr: string
}

export interface ClusterPlan {
  readonly name: string
  readonly index: number
  readonly controlPlane: MachinePlan
  readonly nodes: readonly NodePlan[]
  /** The machine that runs all this, as one more machine on the bridge. */
  readonly host: { readonly address: string; readonly link: string; readonly peer: string }
  readonly bridge: string
  /** Contains all addresses of this cluster. */
  readonly network: string
  readonly podCidr: string
  readonly fakePodCidr: string
  readonly serviceCidr: string
  readonly kubernetesAddress: string
  readonly dnsAddress: string
  readonly apiPort: number
}

export const MAX_NODES = 60
/** Index i uses 10.(128+i).0.0/16. */
export const MAX_CLUSTERS = 64
const NAME = /^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$/

/**
 * Returns the name.
 * @throws Error that says what a name may be
 */
export function parseClusterName(name: string): string {
  if (NAME.test(name)) return name
  throw new Error(
    `"${name}" is not a valid name for a cluster: lower-case letters, digits and "-", first a letter, at most 20 characters`,
  )
}

/** Returns the common prefix of the names of all namespaces and cgroups of a cluster. */
export function labelPrefix(name: string): string {
  return `us-${name}-`
}

/**
 * @param index 0 to MAX_CLUSTERS - 1, different for every cluster on this machine
 * @param nodes number of worker nodes, 1 to MAX_NODES
 */
export function planCluster(name: string, index: number, nodes: number): ClusterPlan {
  parseClusterName(name)
  if (!Number.isInteger(index) || index < 0 || index >= MAX_CLUSTERS)
    throw new Error(`cluster index ${index}`)
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new Error(`a cluster has 1 to ${MAX_NODES} nodes, not ${nodes}`)
  }
  const base = `10.${128 + index}`
  const machine = (machineName: string, host: number): MachinePlan => ({
    name: machineName,
    label: `${labelPrefix(name)}${machineName}`,
    address: `${base}.0.${host}`,
    mac: `02:75:73:${hex(index)}:00:${hex(host)}`,
    link: `us${index}-${machineName}`,
  })
  return {
    name,
    index,
    controlPlane: machine('cp', 1),
    nodes: Array.from({ length: nodes }, (_, i) => ({
      ...machine(`n${i + 1}`, 11 + i),
      podCidr: `${base}.${65 + i}.0/24`,
    })),
    host: { address: `${base}.0.254`, link: `us${index}-host`, peer: `us${index}-hostp` },
    bridge: 'us-bridge',
    network: `${base}.0.0/16`,
    podCidr: `${base}.64.0/18`,
    fakePodCidr: `${base}.192.0/18`,
    serviceCidr: `${base}.128.0/18`,
    kubernetesAddress: `${base}.128.1`,
    dnsAddress: `${base}.128.10`,
    apiPort: 6443,
  }
}

/** Machines beside the cluster's own, which some other program runs. */
export const MAX_GUESTS = 3

/**
 * Returns the plan of a node that is on the bridge of a cluster although the playground does not run it, such as a
 * virtual machine.
 * @param number 0 to MAX_GUESTS - 1, different for every such node of the cluster
 */
export function planGuest({ name: cluster, index }: ClusterPlan, name: string, number: number): NodePlan {
  if (!Number.isInteger(number) || number < 0 || number >= MAX_GUESTS) throw new Error(`guest ${number}`)
  const base = `10.${128 + index}`
  const host = 11 + MAX_NODES + number
  return {
    name,
    label: `${labelPrefix(cluster)}${name}`,
    address: `${base}.0.${host}`,
    mac: `02:75:73:${hex(index)}:00:${hex(host)}`,
    link: `us${index}-guest${number}`,
    podCidr: `${base}.${65 + MAX_NODES + number}.0/24`,
  }
}

function hex(value: number): string {
  return value.toString(16).padStart(2, '0')
}

/**
 * Returns the lowest index whose network is used neither by another cluster nor by this machine's routes and addresses.
 */
export function chooseIndex(taken: ReadonlySet<number>, used: readonly string[]): number {
  for (let index = 0; index < MAX_CLUSTERS; index++) {
    if (taken.has(index)) continue
    const network = `10.${128 + index}.0.0/16`
    if (!used.some(cidr => overlaps(cidr, network))) return index
  }
  throw new Error('no free network left in 10.128.0.0/10: take down a cluster that you no longer need')
}

/** True if two IPv4 networks (or addresses) share an address. */
export function overlaps(a: string, b: string): boolean {
  const [addressA, bitsA] = parseCidr(a)
  const [addressB, bitsB] = parseCidr(b)
  const shift = 32n - BigInt(Math.min(bitsA, bitsB))
  return addressA >> shift === addressB >> shift
}

function parseCidr(cidr: string): [bigint, number] {
  const [address = '', bits = '32'] = cidr.split('/')
  const octets = address.split('.').map(Number)
  if (octets.length !== 4 || octets.some(octet => !(octet >= 0 && octet <= 255)))
    throw new Error(`not an IPv4 CIDR: ${cidr}`)
  return [octets.reduce((sum, octet) => sum * 256n + BigInt(octet), 0n), Number(bits)]
}
