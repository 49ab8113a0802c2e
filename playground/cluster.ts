import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureImages } from '../images/build.ts'
import { type Progress, type Step, silent } from '../src/terminal/progress.ts'
import { ensureArtifacts, missingArtifacts } from './artifacts/artifacts.ts'
import {
  clusterArtifacts,
  connect,
  type Site,
  startControlPlaneMachine,
  startDns,
  startNodeMachine,
  waitForApi,
  waitForContainerd,
  waitForNode,
  writeConfiguration,
} from './bring-up.ts'
import { type Cluster, clusterOf } from './cluster-handle.ts'
import { destroy } from './destroy.ts'
import { withLock } from './lock.ts'
import { networksInUse } from './network.ts'
import { clusterPaths, stateRoot } from './paths.ts'
import { type ClusterPlan, chooseIndex, parseClusterName, planCluster } from './plan.ts'
import { checkNftables, checkPrerequisites } from './prerequisites.ts'
import { isAlive } from './process.ts'
import { allStates, type ClusterState, type MachineProcesses, readState, writeState } from './state.ts'

export type { Cluster } from './cluster-handle.ts'

export const DEFAULT_NAME = 'playground'

export interface UpOptions {
  /** Default: $UNDERSTUDY_PLAYGROUND or `playground`. Clusters of different names do not touch each other. */
  readonly name?: string | undefined
  /** Number of worker nodes, n1 to nN. Default 3. */
  readonly nodes?: number
  /**
   * Image archives for every node's containerd. A function is called while the cluster starts, so that building images
   * takes no extra time. The pause image is always included.
   */
  readonly images?: readonly string[] | ((signal: AbortSignal | undefined) => Promise<readonly string[]>)
  readonly progress?: Progress | undefined
  /** Aborting takes down everything that was started, then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

export function clusterName(name: string | undefined): string {
  return parseClusterName(name ?? process.env['UNDERSTUDY_PLAYGROUND'] ?? DEFAULT_NAME)
}

/**
 * Returns a running cluster of that name. Starts it if it does not exist, starts its nodes that are off, and otherwise
 * leaves it as it is.
 * @throws PlaygroundError with advice on failure; then nothing runs and only its logs remain
 */
export async function up(options: UpOptions = {}): Promise<Cluster> {
  const name = clusterName(options.name)
  const { progress = silent, signal } = options
  const root = stateRoot()
  const cold = (await missingArtifacts(clusterArtifacts)).length > 0
  await progress.step('prerequisites', step => checkPrerequisites({ cold, stateRoot: root }, step, signal))
  await mkdir(root, { recursive: true, mode: 0o755 })
  return progress.step(`cluster ${name}`, step => upLocked(name, root, options, progress, step))
}

async function upLocked(
  name: string,
  root: string,
  options: UpOptions,
  progress: Progress,
  step: Step,
): Promise<Cluster> {
  const { signal } = options
  let archives: Promise<readonly string[]> | undefined
  const images = (inner: AbortSignal | undefined): Promise<readonly string[]> => {
    const { images: given = [] } = options
    archives ??= typeof given === 'function' ? given(inner) : Promise.resolve(given)
    return archives
  }
  const cluster = await withLock(
    clusterPaths(name, root).lock,
    async () => {
      const state = await readState(name, root)
      if (state !== undefined && (await runs(state)) && (options.nodes ?? state.nodes) === state.nodes) {
        step.detail('was already up')
        return clusterOf(state, root)
      }
      // Recreate a cluster that has lost its control plane or whose start was never finished.
      await destroy(name, { root })
      try {
        return await create(name, root, { ...options, progress, nodes: options.nodes ?? 3, images })
      } catch (error) {
        await progress.step('taking the started parts down', () =>
          destroy(name, { root, keepLogs: signal?.aborted !== true }),
        )
        throw error
      }
    },
    { signal, onWait: pid => step.detail(`waiting for process ${pid}`) },
  )
  for (const node of cluster.nodes) {
    if (!(await cluster.hasPower(node))) await cluster.startNode(node, { progress, signal })
  }
  await cluster.loadImages(await images(signal), { progress, signal })
  return cluster
}

async function runs(state: ClusterState): Promise<boolean> {
  const { cp } = state.machines
  return state.ready && cp !== undefined && (await isAlive(cp.init))
}

interface CreateOptions {
  readonly nodes: number
  readonly images: (signal: AbortSignal | undefined) => Promise<readonly string[]>
  readonly progress: Progress
  readonly signal?: AbortSignal | undefined
}

/** Builds images in parallel with the start. The first failure cancels the other. */
async function create(name: string, root: string, options: CreateOptions): Promise<Cluster> {
  const started = Promise.withResolvers<Cluster>()
  await allOrNone(
    [
      async signal => started.resolve(await start(name, root, { ...options, signal })),
      signal => options.images(signal),
    ],
    options.signal,
  )
  return started.promise
}

async function start(name: string, root: string, options: CreateOptions): Promise<Cluster> {
  const { progress, signal } = options
  const artifacts = await ensureArtifacts(clusterArtifacts, { progress, signal })
  await checkNftables(artifacts['node-rootfs'], signal)
  const pause = (await ensureImages(['pause'], signal ? { signal } : {})).pause

  const paths = clusterPaths(name, root)
  let state = await reserve(name, root, options.nodes, artifacts, pause.ref, signal)
  const plan = planCluster(name, state.index, state.nodes)
  const site: Site = { plan, paths, artifacts, pauseImage: pause.ref }
  const record = async (machine: string, processes: MachineProcesses): Promise<void> => {
    state = { ...state, machines: { ...state.machines, [machine]: processes } }
    await writeState(state, root)
  }
  await progress.step('certificates, configuration, machines', async () => {
    const apiserverArgs = await writeConfiguration(site, signal)
    await record('cp', await startControlPlaneMachine(site, apiserverArgs, signal))
    for (const node of plan.nodes) await record(node.name, await startNodeMachine(site, node, signal))
  })
  const cluster = clusterOf(state, root)
  await allOrNone(
    [
      inner => startApi(site, plan, progress, inner),
      inner =>
        progress.step('pause image on the nodes', async () => {
          for (const node of plan.nodes) {
            await waitForContainerd(site, node, cluster.argvOnNode(node.name, ['ctr', 'version']), inner)
          }
          await cluster.loadImages([pause.path], { signal: inner })
        }),
    ],
    signal,
  )
  state = { ...state, ready: true, images: (await readState(name, root))?.images ?? {} }
  await writeState(state, root)
  return cluster
}

async function startApi(
  site: Site,
  plan: ClusterPlan,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<void> {
  await progress.step('API server', () => waitForApi(site, signal))
  const api = await connect(site.paths)
  try {
    await allOrNone(
      [
        ...plan.nodes.map(
          node => (inner: AbortSignal) =>
            progress.step(`node ${node.name}`, () => waitForNode(site, api, node, undefined, inner)),
        ),
        inner => progress.step('cluster DNS', () => startDns(site, api, inner)),
      ],
      signal,
    )
  } finally {
    await api.close()
  }
}

/**
 * Runs all functions. After the first failure it aborts the others and waits for them, so that nothing still runs when
 * it rejects.
 */
async function allOrNone(
  work: readonly ((signal: AbortSignal) => Promise<unknown>)[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = new AbortController()
  const inner = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal])
  let first: { readonly error: unknown } | undefined
  await Promise.all(
    work.map(async it => {
      try {
        await it(inner)
      } catch (error) {
        first ??= { error }
        stop.abort()
      }
    }),
  )
  if (first !== undefined) throw first.error
}

/** Chooses a free network and writes the record before anything exists. Only one cluster at a time chooses. */
async function reserve(
  name: string,
  root: string,
  nodes: number,
  artifacts: ClusterState['artifacts'],
  pauseImage: string,
  signal: AbortSignal | undefined,
): Promise<ClusterState> {
  return withLock(
    join(root, '.networks.lock'),
    async () => {
      const taken = new Set((await allStates(root)).map(state => state.index))
      const index = chooseIndex(taken, await networksInUse())
      const state: ClusterState = {
        version: 1,
        name,
        index,
        nodes,
        artifacts,
        pauseImage,
        machines: {},
        images: {},
        ready: false,
      }
      const { root: directory } = clusterPaths(name, root)
      await rm(directory, { recursive: true, force: true })
      await mkdir(directory, { recursive: true, mode: 0o755 })
      await writeState(state, root)
      return state
    },
    { signal },
  )
}

/** Returns the cluster of that name if it is up. */
export async function openCluster(name?: string): Promise<Cluster | undefined> {
  const state = await readState(clusterName(name))
  return state !== undefined && (await runs(state)) ? clusterOf(state, stateRoot()) : undefined
}

/** Takes a cluster down, whatever its state. Nothing remains of it. */
export async function down(
  name?: string,
  options: { progress?: Progress; signal?: AbortSignal } = {},
): Promise<void> {
  const cluster = clusterName(name)
  const { progress = silent, signal } = options
  await progress.step(`take down ${cluster}`, step =>
    withLock(clusterPaths(cluster).lock, () => destroy(cluster), {
      signal,
      onWait: pid => step.detail(`waiting for process ${pid}`),
    }),
  )
}
