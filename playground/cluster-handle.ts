import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Progress, silent } from '../src/terminal/progress.ts'
import { connect, type Site, siteOf, startNodeMachine, waitForContainerd, waitForNode } from './bring-up.ts'
import { cgroupsOf, detectCgroups, pause } from './cgroups.ts'
import { destroy } from './destroy.ts'
import { type RunOptions, run } from './exec.ts'
import { PlaygroundError } from './failure.ts'
import { archiveKeys, importImages, listImages, type NodeImage } from './images-on-nodes.ts'
import { type Kwok, startKwok } from './kwok.ts'
import { withLock } from './lock.ts'
import { powerOff } from './machine.ts'
import { cutLink, joinLink, removeNodeNetwork } from './network.ts'
import { clusterPaths } from './paths.ts'
import type { ClusterPlan, NodePlan } from './plan.ts'
import { isAlive } from './process.ts'
import { type ClusterState, keysAfterImport, planOf, readState, writeState } from './state.ts'

interface WorkOptions {
  readonly progress?: Progress | undefined
  readonly signal?: AbortSignal | undefined
}

/** A running cluster. Several programs may hold handles of the same cluster at the same time. */
export interface Cluster {
  readonly name: string
  readonly plan: ClusterPlan
  /** Names of the worker nodes, with or without power. */
  readonly nodes: readonly string[]
  readonly stateDir: string
  /** The administrator's; works in this machine's own network. */
  readonly kubeconfigPath: string
  readonly kubectl: string
  /** One JSON object a line (audit.k8s.io/v1 Event, level Metadata) for every request to the API server. */
  readonly auditLogPath: string
  /**
   * Path of a service's log. The machine is `cp` or a node; the service is kubelet, containerd, kube-proxy, etcd,
   * kube-apiserver, ...
   */
  logPath(machine: string, service: string): string
  /** Runs a program of the node in all of the node's namespaces and returns its output. Throws CommandError. */
  inNode(node: string, argv: readonly string[], options?: RunOptions): Promise<string>
  /** Returns the argv that does the same, for spawning; valid until the node's next power cut. */
  argvOnNode(node: string, argv: readonly string[]): string[]
  /**
   * Returns an argv that runs a program of THIS machine in a node's network: Services' addresses work there, and the
   * program sees this machine's files and processes. Also for `cp`.
   */
  argvInNetwork(machine: string, argv: readonly string[]): string[]
  hasPower(node: string): Promise<boolean>
  /** Simulates a power cut: the link goes down, then everything on the node gets SIGKILL. Its disk stays. */
  killNode(node: string): Promise<void>
  /** Restores the power. Resolves when the node is Ready. */
  startNode(node: string, options?: WorkOptions): Promise<void>
  /** Unplugs a node from the network. Everything on it runs on. */
  cutNode(node: string): Promise<void>
  /** Plugs a node in again that was cut. */
  joinNode(node: string): Promise<void>
  /** Stops all processes of a node; its network still answers what the kernel answers. */
  pauseNode(node: string): Promise<void>
  resumeNode(node: string): Promise<void>
  /** Imports image archives on all nodes with power. An archive that a node already has costs nothing. */
  loadImages(archives: readonly string[], options?: WorkOptions): Promise<void>
  nodeImages(node: string): Promise<NodeImage[]>
  /** Adds fake nodes. Their pods run no process and are Ready at once. */
  startKwok(options: { readonly nodes: number; readonly signal?: AbortSignal }): Promise<Kwok>
  /** Takes the whole cluster down. */
  down(): Promise<void>
}

export function clusterOf(initial: ClusterState, root: string): Cluster {
  const { name } = initial
  const plan = planOf(initial)
  const paths = clusterPaths(name, root)

  const current = async (): Promise<ClusterState> => {
    const state = await readState(name, root)
    if (state === undefined)
      throw new PlaygroundError(`cluster ${name} is not up`, { advice: 'npm run playground -- up' })
    return state
  }
  const change = async (edit: (state: ClusterState) => ClusterState): Promise<void> =>
    withLock(`${paths.state}.lock`, async () => writeState(edit(await current()), root))
  const nodeNamed = (node: string): NodePlan => {
    const found = plan.nodes.find(it => it.name === node)
    if (found !== undefined) return found
    throw new PlaygroundError(
      `cluster ${name} has no node ${node}, only ${plan.nodes.map(it => it.name).join(', ')}`,
    )
  }
  const machineNamed = (machine: string) => (machine === 'cp' ? plan.controlPlane : nodeNamed(machine))
  const cgroupsOfNode = async (node: string): Promise<string[]> => {
    const { label } = nodeNamed(node)
    const found = await cgroupsOf(await detectCgroups(), label)
    return found.filter(path => basename(path) === label)
  }
  const site = async (): Promise<Site> => siteOf(await current(), plan, paths)

  const cluster: Cluster = {
    name,
    plan,
    nodes: plan.nodes.map(node => node.name),
    stateDir: paths.root,
    kubeconfigPath: paths.kubeconfig,
    kubectl: join(paths.bin, 'kubectl'),
    auditLogPath: paths.auditLog,
    logPath: (machine, service) => join(paths.machine(machineNamed(machine).name).logs, `${service}.log`),

    inNode: (node, argv, options) => run(cluster.argvOnNode(node, argv), options),
    argvOnNode: (node, argv) => [
      ...['nsenter', '--target', readFileSync(paths.machine(nodeNamed(node).name).pidFile, 'utf8').trim()],
      ...['--mount', '--net', '--pid', '--uts', '--', 'env', `PATH=${NODE_PATH}`, 'HOME=/root'],
      ...argv,
    ],
    argvInNetwork: (machine, argv) => [
      'nsenter',
      `--net=/run/netns/${machineNamed(machine).label}`,
      '--',
      ...argv,
    ],

    async hasPower(node) {
      const processes = (await current()).machines[nodeNamed(node).name]
      return processes !== undefined && (await isAlive(processes.init))
    },

    killNode: node =>
      withLock(paths.lock, async () => {
        const target = nodeNamed(node)
        const processes = (await current()).machines[node]
        if (processes === undefined) return
        await cutLink(plan, target)
        await powerOff(target.label, [processes])
        await removeNodeNetwork(plan, target)
        await change(({ machines, ...state }) => {
          const { [node]: _, ...rest } = machines
          return { ...state, machines: rest }
        })
      }),

    startNode: (node, { progress = silent, signal } = {}) =>
      withLock(paths.lock, () =>
        progress.step(`node ${node}`, async () => {
          if (await cluster.hasPower(node)) return
          const target = nodeNamed(node)
          // Clean up after a power cut that was itself interrupted.
          await powerOff(target.label, [])
          await removeNodeNetwork(plan, target)
          const since = Date.now()
          const here = await site()
          const processes = await startNodeMachine(here, target, signal)
          await change(state => ({ ...state, machines: { ...state.machines, [node]: processes } }))
          await waitForContainerd(here, target, cluster.argvOnNode(node, ['ctr', 'version']), signal)
          const api = await connect(paths)
          try {
            await waitForNode(here, api, target, since, signal)
          } finally {
            await api.close()
          }
        }),
      ),

    cutNode: node => withLock(paths.lock, () => cutLink(plan, nodeNamed(node))),
    joinNode: node => withLock(paths.lock, () => joinLink(plan, nodeNamed(node))),

    pauseNode: node => withLock(paths.lock, async () => pause(await cgroupsOfNode(node), true)),
    resumeNode: node => withLock(paths.lock, async () => pause(await cgroupsOfNode(node), false)),

    async loadImages(archives, { progress = silent, signal } = {}) {
      const { images } = await current()
      const all = await archiveKeys(archives)
      const missingOn = (node: string) => all.filter(it => images[node]?.includes(it.key) !== true)
      if (cluster.nodes.every(node => missingOn(node).length === 0)) return
      await progress.step('images on the nodes', async step => {
        await Promise.all(
          cluster.nodes.map(async node => {
            if (!(await cluster.hasPower(node))) return
            const missing = missingOn(node)
            const onNode = (argv: readonly string[]): string[] => cluster.argvOnNode(node, argv)
            const paths = missing.map(it => it.path)
            await importImages(onNode, paths, signal, path => step.detail(basename(path)))
            await change(state => ({
              ...state,
              images: {
                ...state.images,
                [node]: keysAfterImport(
                  state.images[node] ?? [],
                  missing.map(it => it.key),
                ),
              },
            }))
          }),
        )
        step.detail(`${archives.length} archives`)
      })
    },

    nodeImages: node => listImages(argv => cluster.argvOnNode(node, argv)),
    startKwok: options => startKwok({ plan, paths, ...options }),
    down: () => withLock(paths.lock, () => destroy(name, { root })),
  }
  return cluster
}

const NODE_PATH = '/opt/understudy/kube:/opt/understudy/containerd:/usr/sbin:/usr/bin:/sbin:/bin'
