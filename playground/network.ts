import { run } from './exec.ts'
import type { ClusterPlan, MachinePlan, NodePlan } from './plan.ts'

/**
 * The network of a cluster: one bridge in the control plane's network namespace, one veth pair a node, and one more
 * that connects this machine to the bridge. In the machine's own network only that link and its routes change.
 */

/** Returns the alias that marks our links on this machine; a name alone would not say which cluster owns a link. */
export function linkAlias(cluster: string): string {
  return `understudy:${cluster}`
}

/** Creates the control plane's namespace, the bridge, and the link to this machine with routes to the nodes' pods. */
export async function createControlPlaneNetwork(plan: ClusterPlan, signal?: AbortSignal): Promise<void> {
  const { controlPlane: cp, bridge, host } = plan
  await run(['ip', 'netns', 'add', cp.label], { signal })
  await ipBatch(cp.label, [
    'link set lo up',
    `link add ${bridge} address ${cp.mac} type bridge`,
    `addr add ${cp.address}/24 dev ${bridge}`,
    `link set ${bridge} up`,
    ...plan.nodes.map(node => `route add ${node.podCidr} via ${node.address}`),
  ])
  await ipBatch(undefined, [
    `link add ${host.link} type veth peer name ${host.peer} netns ${cp.label}`,
    `link set ${host.link} alias ${linkAlias(plan.name)}`,
    `addr add ${host.address}/24 dev ${host.link}`,
    `link set ${host.link} up`,
  ])
  await ipBatch(cp.label, [`link set ${host.peer} master ${bridge} up`])
  await ipBatch(
    undefined,
    plan.nodes.map(node => `route add ${node.podCidr} via ${node.address} dev ${host.link}`),
  )
}

/** Creates a node's namespace, its link to the bridge, and routes to the other nodes' pods. */
export async function createNodeNetwork(
  plan: ClusterPlan,
  node: NodePlan,
  signal?: AbortSignal,
): Promise<void> {
  const { controlPlane: cp, bridge } = plan
  await run(['ip', 'netns', 'add', node.label], { signal })
  await ipBatch(cp.label, [
    `link add ${node.link} type veth peer name eth0 address ${node.mac} netns ${node.label}`,
    `link set ${node.link} master ${bridge} up`,
  ])
  await ipBatch(node.label, [
    'link set lo up',
    `addr add ${node.address}/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${cp.address}`,
    ...plan.nodes.filter(it => it !== node).map(it => `route add ${it.podCidr} via ${it.address}`),
  ])
}

/**
 * Creates a tap device on the bridge for a node that another program runs (`planGuest`), and the routes to its pods. The
 * device is in the control plane's namespace and ends with it.
 */
export async function createGuestNetwork(plan: ClusterPlan, guest: NodePlan): Promise<void> {
  const toPods = `route add ${guest.podCidr} via ${guest.address}`
  await ipBatch(plan.controlPlane.label, [
    `tuntap add dev ${guest.link} mode tap`,
    `link set ${guest.link} master ${plan.bridge} up`,
    toPods,
  ])
  for (const node of plan.nodes) await ipBatch(node.label, [toPods])
  await ipBatch(undefined, [`${toPods} dev ${plan.host.link}`])
}

/** Removes what `createGuestNetwork` has made. */
export async function removeGuestNetwork(plan: ClusterPlan, guest: NodePlan): Promise<void> {
  const toPods = `route del ${guest.podCidr} via ${guest.address}`
  await ipBatch(undefined, [`${toPods} dev ${plan.host.link}`])
  for (const node of plan.nodes) await ipBatch(node.label, [toPods])
  await ipBatch(plan.controlPlane.label, [toPods, `link del ${guest.link}`])
}

/** Unplugs a node: from now on no packet reaches or leaves it. */
export async function cutLink(plan: ClusterPlan, node: NodePlan): Promise<void> {
  await run(['ip', '-n', plan.controlPlane.label, 'link', 'set', node.link, 'down'])
}

/** Plugs the node in again. */
export async function joinLink(plan: ClusterPlan, node: NodePlan): Promise<void> {
  await run(['ip', '-n', plan.controlPlane.label, 'link', 'set', node.link, 'up'])
}

/**
 * Removes a node's link and namespace. The link goes first: the kernel removes it only some time after its namespace,
 * and until then the node's next start fails with "File exists".
 */
export async function removeNodeNetwork(plan: ClusterPlan, node: NodePlan): Promise<void> {
  const namespaces = await networkNamespaces()
  if (namespaces.includes(plan.controlPlane.label)) {
    const links = await linksIn(plan.controlPlane.label)
    if (links.some(link => link.name === node.link)) {
      await run(['ip', '-n', plan.controlPlane.label, 'link', 'del', node.link])
    }
  }
  await removeNamespace(node)
}

export async function removeNamespace(machine: MachinePlan): Promise<void> {
  if ((await networkNamespaces()).includes(machine.label)) await run(['ip', 'netns', 'del', machine.label])
}

/** Removes the links on this machine that belong to a cluster, whatever its index was. */
export async function removeHostLinks(cluster: string): Promise<void> {
  for (const link of await hostLinks(cluster)) await run(['ip', 'link', 'del', link])
}

export async function hostLinks(cluster: string): Promise<string[]> {
  return (await linksIn(undefined)).filter(link => link.alias === linkAlias(cluster)).map(link => link.name)
}

/** Returns the names of all named network namespaces. */
export async function networkNamespaces(): Promise<string[]> {
  const text = await run(['ip', '-j', 'netns', 'list'])
  return text.trim() === '' ? [] : (JSON.parse(text) as { name: string }[]).map(it => it.name)
}

/** Returns the IPv4 networks in which this machine has addresses or to which it has routes. */
export async function networksInUse(): Promise<string[]> {
  const routes = JSON.parse(await run(['ip', '-j', '-4', 'route', 'show', 'table', 'all'])) as {
    dst: string
  }[]
  const addresses = JSON.parse(await run(['ip', '-j', '-4', 'addr'])) as {
    addr_info: { local: string; prefixlen: number }[]
  }[]
  return [
    ...routes.map(route => route.dst).filter(dst => /^[0-9]/.test(dst) && !dst.startsWith('0.0.0.0')),
    ...addresses.flatMap(link => link.addr_info.map(it => `${it.local}/${it.prefixlen}`)),
  ]
}

async function linksIn(namespace: string | undefined): Promise<{ name: string; alias?: string }[]> {
  const text = await run(['ip', ...(namespace === undefined ? [] : ['-n', namespace]), '-j', 'link'])
  const links = JSON.parse(text) as { ifname: string; ifalias?: string }[]
  return links.map(link => ({
    name: link.ifname,
    ...(link.ifalias !== undefined && { alias: link.ifalias }),
  }))
}

/** Runs all lines in one process. The first line that fails ends it, and the error has the line's number. */
async function ipBatch(namespace: string | undefined, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return
  await run(['ip', ...(namespace === undefined ? [] : ['-n', namespace]), '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
  })
}
