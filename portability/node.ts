/** A node of some kind in a cluster: switched on, joined, and its facts. */
import { mkdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Cluster } from '../playground/cluster.ts'
import { type RunOptions, run, runToEnd } from '../playground/exec.ts'
import type { OnNode } from '../playground/images-on-nodes.ts'
import { createGuestNetwork, removeGuestNetwork } from '../playground/network.ts'
import { clusterPaths } from '../playground/paths.ts'
import { type NodePlan, planGuest } from '../playground/plan.ts'
import { commandLine } from '../playground/render/shell.ts'
import { until } from '../playground/until.ts'
import type { Api } from '../src/kube/api.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { isReady } from '../src/kube/ready.ts'
import { type Node, nodes } from '../src/kube/resources.ts'
import type { Progress } from '../src/terminal/progress.ts'
import type { NodeKind } from './kinds.ts'
import { startMachine, type VirtualMachine } from './qemu.ts'
import type { RootDisk } from './root-disk.ts'
import { laterUnits } from './root-files.ts'
import { makeSeed, type Seed } from './seed.ts'

/** An emulated node needs minutes for what others do in seconds, and the machine may be busy. */
export const patience = { patienceMs: 900_000, pollMs: 1000 } as const

export interface GuestNode extends AsyncDisposable {
  readonly name: string
  readonly onNode: OnNode
  /** Runs a program in the node as root. */
  readonly inNode: (argv: readonly string[], options?: RunOptions) => Promise<string>
  readonly node: Node
  /** Aborts with the run, and when the machine has ended. */
  readonly alive: AbortSignal
}

export interface JoinOptions {
  readonly kind: NodeKind
  readonly name: string
  /** Different for each node that joins a cluster: 0, 1 or 2. */
  readonly number: number
  readonly cluster: Cluster
  readonly api: Api
  readonly root: RootDisk
  readonly artifacts: { readonly kube: string; readonly containerd: string }
  readonly pauseImage: string
  /** Archives of the images for the node. */
  readonly images: readonly string[]
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Switches a node on. Resolves when it is Ready; closing it removes all of it, also from the API server. */
export async function joinNode(options: JoinOptions): Promise<GuestNode> {
  const { name, number, cluster, api, root, progress, signal } = options
  const guest = planGuest(cluster.plan, name, number)
  const paths = clusterPaths(cluster.name)
  const machine = paths.machine(guest.name)
  await rm(machine.root, { recursive: true, force: true })
  await mkdir(machine.root, { recursive: true, mode: 0o700 })
  await mkdir(machine.logs, { recursive: true })
  await createGuestNetwork(cluster.plan, guest)
  let vm: VirtualMachine | undefined
  const ended = new AbortController()
  const watch = setInterval(() => vm?.check().catch((error: unknown) => ended.abort(error)), 2_000)
  const close = async (): Promise<void> => {
    clearInterval(watch)
    await vm?.stop()
    await removeGuestNetwork(cluster.plan, guest)
    await rm(machine.root, { recursive: true, force: true })
    await api.delete(nodes, { name: guest.name }).catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
  }
  try {
    const seed = await makeSeed(machine.root, { ...options, plan: cluster.plan, guest, paths })
    const started = await startMachine({
      guest,
      namespace: cluster.plan.controlPlane.label,
      root,
      seed: seed.disk,
      console: join(machine.logs, 'console.log'),
      log: join(machine.logs, 'qemu.log'),
    })
    vm = started
    const onNode = ssh(guest, seed)
    await booted(onNode, started, options)
    await importAll(onNode, seed.images, options)
    await run(onNode(['systemctl', 'start', ...laterUnits]), { signal })
    const node = await progress.step(`${name} is Ready`, () =>
      until(
        `node ${guest.name} is Ready`,
        async () => {
          await started.check()
          const byName = { fieldSelector: `metadata.name=${guest.name}` }
          return (await api.list(nodes, byName, { signal })).items.find(isReady)
        },
        { ...patience, signal },
      ),
    )
    return {
      name: guest.name,
      onNode,
      inNode: (argv, more) => run(onNode(argv), { signal, ...more }),
      node,
      alive: AbortSignal.any([signal, ended.signal]),
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns the argv that runs a program in the node by ssh, with none of the user's settings. */
function ssh({ address }: NodePlan, { key, knownHosts }: Seed): OnNode {
  const settings = [
    `UserKnownHostsFile=${knownHosts}`,
    'StrictHostKeyChecking=yes',
    'BatchMode=yes',
    'ConnectTimeout=20',
    'ServerAliveInterval=20',
    'LogLevel=ERROR',
  ]
  return argv => [
    ...['ssh', '-F', 'none', '-i', key, ...settings.flatMap(each => ['-o', each])],
    ...[`root@${address}`, commandLine(argv)],
  ]
}

const booted = (
  onNode: OnNode,
  vm: VirtualMachine,
  { name, progress, signal }: Pick<JoinOptions, 'name' | 'progress' | 'signal'>,
): Promise<unknown> =>
  progress.step(`boot ${name}`, step => {
    step.expect(110)
    return until(
      `${name} answers, and its containerd`,
      async () => {
        await vm.check()
        const { code, stderr } = await runToEnd(onNode(['ctr', 'version']), { signal })
        step.detail(code === 0 ? '' : (stderr.trim().split('\n').at(-1) ?? ''))
        return code === 0
      },
      { ...patience, signal },
    )
  })

const importAll = (
  onNode: OnNode,
  images: readonly string[],
  { name, progress, signal }: Pick<JoinOptions, 'name' | 'progress' | 'signal'>,
): Promise<void> =>
  progress.step(`images on ${name}`, async step => {
    for (const image of images) {
      step.detail(basename(image))
      await run(onNode(['ctr', '--namespace', 'k8s.io', 'images', 'import', image]), { signal })
    }
    step.detail(`${images.length} archives`)
  })
