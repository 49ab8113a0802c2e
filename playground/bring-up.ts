// Long because it is the order of the steps from nothing to a running cluster.
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Api, createApi } from '../src/kube/api.ts'
import { loadConnection } from '../src/kube/connection.ts'
import { leases, nodes as nodeResource } from '../src/kube/resources.ts'
import { prepareApiserver, type Tls, waitReady } from './apiserver.ts'
import { applyManifests } from './apply.ts'
import { type ArtifactName, ensureArtifacts } from './artifacts/artifacts.ts'
import { mayLowerOomScore } from './capabilities.ts'
import { kubeconfigWriter, writeNodeCredentials } from './credentials.ts'
import { runToEnd } from './exec.ts'
import { PlaygroundError } from './failure.ts'
import { startMachine } from './machine.ts'
import { createControlPlaneNetwork, createNodeNetwork } from './network.ts'
import type { ClusterPaths } from './paths.ts'
import { type Authority, openAuthority } from './pki.ts'
import type { ClusterPlan, NodePlan } from './plan.ts'
import {
  controlPlanePath,
  controlPlaneServices,
  DNS_ALLOWED,
  dnsManifests,
  etcdEndpoint,
  renderCorefile,
} from './render/control-plane.ts'
import { nodePath, nodeServices, nodeSysctls, renderNodeFiles } from './render/node.ts'
import type { ClusterState, MachineProcesses } from './state.ts'

/** A cluster's plan, paths and artifacts: the input of the functions below. */
export interface Site {
  readonly plan: ClusterPlan
  readonly paths: ClusterPaths
  readonly artifacts: Readonly<Record<ClusterArtifact, string>>
  readonly pauseImage: string
}

export const clusterArtifacts = [
  'kube',
  'etcd',
  'containerd',
  'coredns',
  'node-rootfs',
] as const satisfies readonly ArtifactName[]
export type ClusterArtifact = (typeof clusterArtifacts)[number]

export async function siteOf(state: ClusterState, plan: ClusterPlan, paths: ClusterPaths): Promise<Site> {
  // A running cluster keeps its recorded artifacts; a newer checkout's binaries are for the next `up`.
  const artifacts = Object.fromEntries(
    await Promise.all(
      clusterArtifacts.map(async name => [
        name,
        state.artifacts[name] ?? (await ensureArtifacts([name]))[name],
      ]),
    ),
  ) as Record<ClusterArtifact, string>
  return { plan, paths, artifacts, pauseImage: state.pauseImage }
}

/** Writes keys, certificates, kubeconfigs and configuration files for all machines, and kubectl for this one. */
export async function writeConfiguration(
  site: Site,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const { plan, paths } = site
  await mkdir(paths.pki, { recursive: true, mode: 0o700 })
  await mkdir(paths.bin, { recursive: true })
  await symlink(join(site.artifacts.kube, 'kube'), join(paths.bin, 'kubectl'))
  const authority = await openAuthority(paths.pki, signal)
  const apiserver = await prepareApiserver({
    pkiDir: paths.pki,
    authority,
    address: plan.controlPlane.address,
    port: plan.apiPort,
    etcd: etcdEndpoint,
    serviceCidr: plan.serviceCidr,
    serviceAddress: plan.kubernetesAddress,
    auditLogPath: '/var/log/understudy/audit.log',
  })
  const kubeconfig = kubeconfigWriter(site, authority)
  const cp = paths.machine('cp').files
  await kubeconfig(paths.kubeconfig, 'admin', 'kubernetes-admin', ['system:masters'])
  await Promise.all([
    ...['kube-controller-manager', 'kube-scheduler', 'coredns'].map(name =>
      kubeconfig(join(cp, `${name}.kubeconfig`), name, `system:${name}`),
    ),
    writeFiles(cp, { Corefile: renderCorefile() }),
    ...plan.nodes.map(node => writeNodeConfiguration(site, node, authority)),
  ])
  return apiserver.args
}

/** Writes the configuration and the credentials of a node. */
async function writeNodeConfiguration(site: Site, node: NodePlan, authority: Authority): Promise<void> {
  const files = site.paths.machine(node.name).files
  const lowerOomScore = await mayLowerOomScore()
  await writeFiles(files, renderNodeFiles(site.plan, node, { pauseImage: site.pauseImage, lowerOomScore }))
  await writeNodeCredentials(site, authority, node, files)
}

async function writeFiles(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), text)
  }
}

export async function startControlPlaneMachine(
  site: Site,
  apiserverArgs: readonly string[],
  signal: AbortSignal | undefined,
): Promise<MachineProcesses> {
  const { plan, paths, artifacts } = site
  await createControlPlaneNetwork(plan, signal)
  return startMachine(
    {
      plan: plan.controlPlane,
      weight: 'control plane',
      paths: paths.machine('cp'),
      rootfs: artifacts['node-rootfs'],
      binds: {
        // Same path inside and outside: the API server's arguments name these files.
        [paths.pki]: paths.pki,
        '/opt/understudy/kube': artifacts.kube,
        '/opt/understudy/etcd': artifacts.etcd,
        '/opt/understudy/coredns': artifacts.coredns,
      },
      disks: { '/var/lib/etcd': 'etcd' },
      hosts: hostsOf(plan),
      // The bridge is a switch: no machine may filter the traffic that it forwards between two others.
      sysctls: { 'net/ipv4/ip_forward': '1', 'net/bridge/bridge-nf-call-iptables': '0' },
      path: controlPlanePath,
      services: controlPlaneServices(plan, paths.pki, apiserverArgs),
    },
    signal,
  )
}

export async function startNodeMachine(
  site: Site,
  node: NodePlan,
  signal: AbortSignal | undefined,
): Promise<MachineProcesses> {
  const { plan, paths, artifacts } = site
  await createNodeNetwork(plan, node, signal)
  return startMachine(
    {
      plan: node,
      weight: 'node',
      paths: paths.machine(node.name),
      rootfs: artifacts['node-rootfs'],
      binds: { '/opt/understudy/kube': artifacts.kube, '/opt/understudy/containerd': artifacts.containerd },
      // containerd's layers are overlays themselves, and an overlay cannot be the upper layer of another overlay.
      disks: { '/var/lib/containerd': 'containerd', '/var/lib/kubelet': 'kubelet' },
      hosts: hostsOf(plan),
      sysctls: nodeSysctls,
      path: nodePath,
      services: nodeServices(plan, node),
    },
    signal,
  )
}

function hostsOf(plan: ClusterPlan): Record<string, string> {
  return Object.fromEntries(
    [plan.controlPlane, ...plan.nodes].map(machine => [machine.name, machine.address]),
  )
}

/** Waits until the API server is ready, or until `failed` ends the wait. */
export async function waitForApi({ plan, paths }: Site, signal: AbortSignal | undefined): Promise<void> {
  const tls: Tls = {
    ca: await readFile(join(paths.pki, 'ca.crt')),
    cert: await readFile(join(paths.pki, 'admin.crt')),
    key: await readFile(join(paths.pki, 'admin.key')),
  }
  const logPath = join(paths.logs, 'cp', 'kube-apiserver.log')
  await within('the API server is ready', 60_000, logPath, signal, limited =>
    waitReady({ address: plan.controlPlane.address, port: plan.apiPort }, tls, () => undefined, limited),
  )
}

/** Returns an API client with the administrator's rights; the caller closes it. */
export async function connect(paths: ClusterPaths): Promise<Api> {
  return createApi({
    connection: await loadConnection({ kubeconfig: paths.kubeconfig }),
    userAgent: 'understudy-playground/1',
  })
}

/**
 * Starts name resolution: applies the objects that CoreDNS needs, then waits until it has read the cluster's Services.
 */
export async function startDns(site: Site, api: Api, signal: AbortSignal | undefined): Promise<void> {
  const { plan, paths } = site
  await applyManifests(api, dnsManifests(plan), signal)
  await writeFile(join(paths.machine('cp').files, DNS_ALLOWED), '')
  const logPath = join(paths.logs, 'cp', 'coredns.log')
  await within('CoreDNS is ready', 30_000, logPath, signal, async limited => {
    while (!(await answers(`http://${plan.controlPlane.address}:8181/ready`, limited))) {
      await sleep(200, undefined, { signal: limited })
    }
  })
}

async function answers(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await fetch(url, { signal })).ok
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof TypeError) return false
    throw error
  }
}

/**
 * Waits until a node is Ready. If the node existed before, `since` (ms) is set: its kubelet must also have renewed the
 * node's lease after that. The Ready condition alone may date from before the restart, and its heartbeats are rare and
 * have whole seconds. A new node has no earlier state, and no lease in its first ten seconds.
 */
export async function waitForNode(
  site: Site,
  api: Api,
  { name }: NodePlan,
  since: number | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  const logPath = join(site.paths.machine(name).logs, 'kubelet.log')
  await within(`node ${name} is Ready`, 90_000, logPath, signal, async limited => {
    const byName = { fieldSelector: `metadata.name=${name}` }
    const lives = async (): Promise<boolean> => {
      if (since !== undefined) {
        const inLeases = { namespace: 'kube-node-lease', ...byName }
        const [lease] = (await api.list(leases, inLeases, { signal: limited })).items
        if (!(Date.parse(lease?.spec?.renewTime ?? '') >= since)) return false
      }
      const [node] = (await api.list(nodeResource, byName, { signal: limited })).items
      return node?.status?.conditions?.find(it => it.type === 'Ready')?.status === 'True'
    }
    while (!(await lives())) await sleep(250, undefined, { signal: limited })
  })
}

/** Waits until containerd answers on a node. */
export async function waitForContainerd(
  site: Site,
  node: NodePlan,
  argv: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const logPath = join(site.paths.machine(node.name).logs, 'containerd.log')
  await within(`containerd answers on ${node.name}`, 60_000, logPath, signal, async limited => {
    while ((await runToEnd(argv, { signal: limited })).code !== 0)
      await sleep(200, undefined, { signal: limited })
  })
}

/** Runs a wait with a time limit. On a timeout the error names the awaited event and the log to look at. */
async function within<T>(
  what: string,
  ms: number,
  logPath: string,
  signal: AbortSignal | undefined,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = AbortSignal.timeout(ms)
  try {
    return await wait(signal === undefined ? timeout : AbortSignal.any([signal, timeout]))
  } catch (error) {
    if (signal?.aborted === true || !timeout.aborted) throw error
    throw new PlaygroundError(`timed out after ${ms / 1000} s: ${what}`, { logPath, cause: error })
  }
}
