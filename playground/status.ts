import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { nodes as nodeResource } from '../src/kube/resources.ts'
import { tableLines } from '../src/terminal/table.ts'
import { readyz } from './apiserver.ts'
import { connect } from './bring-up.ts'
import { cgroupsOf, detectCgroups, processesIn } from './cgroups.ts'
import { clusterName } from './cluster.ts'
import { countsOf, type Holdings, holdingsOf } from './leftovers.ts'
import { type ClusterPaths, clusterPaths, stateRoot } from './paths.ts'
import { isAlive, isGone } from './process.ts'
import { controlPlaneServices } from './render/control-plane.ts'
import { nodeServices } from './render/node.ts'
import { type ClusterState, clusterNames, planOf, readState } from './state.ts'

export interface MachineStatus {
  readonly name: string
  readonly power: boolean
  /** Names of the services that should run there, and whether a process of that name runs. */
  readonly services: Readonly<Record<string, boolean>>
  /** Nodes only: the Ready condition from the API server; undefined if the server does not answer. */
  readonly ready?: boolean | undefined
}

export interface ClusterStatus {
  readonly name: string
  /** `down`: nothing of it exists. `broken`: parts exist, but the control plane does not answer. */
  readonly state: 'up' | 'degraded' | 'broken' | 'down'
  readonly machines: readonly MachineStatus[]
  /** How many of each kind exist on this machine for this cluster; all 0 after `down`. */
  readonly counts: Readonly<Record<keyof Holdings, number>>
  readonly kubeconfig?: string
}

export async function statusOf(name?: string): Promise<ClusterStatus> {
  const cluster = clusterName(name)
  const root = stateRoot()
  const state = await readState(cluster, root)
  const counts = countsOf(await holdingsOf(cluster, root))
  const nothing = Object.values(counts).every(count => count === 0)
  if (state === undefined) return { name: cluster, state: nothing ? 'down' : 'broken', machines: [], counts }
  const paths = clusterPaths(cluster, root)
  const ready = await readyNodes(state, paths)
  const machines = await machineStatuses(state, ready)
  const healthy = machines.every(
    it => it.power && it.ready !== false && Object.values(it.services).every(running => running),
  )
  return {
    name: cluster,
    state: ready === undefined ? 'broken' : healthy ? 'up' : 'degraded',
    machines,
    counts,
    kubeconfig: paths.kubeconfig,
  }
}

/** Returns the status of every cluster of which this machine has any part. */
export async function allStatuses(): Promise<ClusterStatus[]> {
  const statuses: ClusterStatus[] = []
  for (const name of await clusterNames(stateRoot())) statuses.push(await statusOf(name))
  return statuses
}

async function readyNodes(
  state: ClusterState,
  paths: ClusterPaths,
): Promise<ReadonlySet<string> | undefined> {
  const { cp } = state.machines
  if (cp === undefined || !(await isAlive(cp.init))) return undefined
  const { controlPlane, apiPort } = planOf(state)
  const pki = (file: string): Promise<Buffer> => readFile(join(paths.pki, file))
  const tls = { ca: await pki('ca.crt'), cert: await pki('admin.crt'), key: await pki('admin.key') }
  const limit = AbortSignal.timeout(5_000)
  if (!(await readyz({ address: controlPlane.address, port: apiPort }, tls, limit))) return undefined
  const api = await connect(paths)
  try {
    const { items } = await api.list(nodeResource, {}, { timeoutMs: 5_000 })
    const isReady = (node: (typeof items)[number]): boolean =>
      node.status?.conditions?.some(it => it.type === 'Ready' && it.status === 'True') === true
    return new Set(items.filter(isReady).map(it => it.metadata.name))
  } finally {
    await api.close()
  }
}

async function machineStatuses(
  state: ClusterState,
  ready: ReadonlySet<string> | undefined,
): Promise<MachineStatus[]> {
  const plan = planOf(state)
  const cgroups = await detectCgroups()
  const all = [
    { machine: plan.controlPlane, services: controlPlaneServices(plan, '', []) },
    ...plan.nodes.map(machine => ({ machine, services: nodeServices(plan, machine) })),
  ]
  return Promise.all(
    all.map(async ({ machine, services }) => {
      const paths = (await cgroupsOf(cgroups, machine.label)).filter(path =>
        path.endsWith(`/${machine.label}`),
      )
      const running = await commandNames(await processesIn(paths.map(path => join(path, 'system'))))
      const processes = state.machines[machine.name]
      return {
        name: machine.name,
        power: processes !== undefined && (await isAlive(processes.init)),
        services: Object.fromEntries(
          services.map(({ name }) => [name, running.has(name.slice(0, COMM_LENGTH))]),
        ),
        ...(machine !== plan.controlPlane && { ready: ready?.has(machine.name) }),
      }
    }),
  )
}

/** The kernel keeps this many characters of a process's name. */
const COMM_LENGTH = 15

async function commandNames(pids: ReadonlySet<number>): Promise<Set<string>> {
  const names = new Set<string>()
  for (const pid of pids) {
    try {
      names.add((await readFile(`/proc/${pid}/comm`, 'utf8')).trim())
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return names
}

export function formatStatus(
  status: Pick<ClusterStatus, 'name' | 'state' | 'machines'> & {
    readonly counts: Readonly<Record<string, number>>
  },
): string {
  const mark = (ok: boolean | undefined): string => (ok === undefined ? '?' : ok ? 'ok' : 'NO')
  const machines = tableLines(
    ['MACHINE', 'POWER', 'READY', 'SERVICES'],
    status.machines.map(machine => [
      machine.name,
      machine.power ? 'on' : 'OFF',
      'ready' in machine ? mark(machine.ready) : '-',
      Object.entries(machine.services)
        .map(([name, running]) => `${name} ${mark(running)}`)
        .join(', '),
    ]),
  )
  const counts = Object.entries(status.counts).map(([kind, count]) => `${count} ${kind}`)
  return [
    `cluster ${status.name}: ${status.state}`,
    ...(status.machines.length === 0 ? [] : machines.map(line => `  ${line}`)),
    `  on this machine: ${counts.join(', ')}`,
  ].join('\n')
}
