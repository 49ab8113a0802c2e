import { spawn } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { exists } from '../build/cache.ts'
import { ensureImages, imageNames } from '../images/build.ts'
import { createProgress, type Progress } from '../src/terminal/progress.ts'
import { type Cluster, clusterName, DEFAULT_NAME, down, openCluster, up } from './cluster.ts'
import { deployOperator } from './deploy.ts'
import { explain, PlaygroundError } from './failure.ts'
import { onInterrupt } from './interrupts.ts'
import { clusterPaths } from './paths.ts'
import { allStatuses, formatStatus, statusOf } from './status.ts'

interface Common {
  readonly name?: string
}

const progress = createProgress(process.stderr)
const signal = onInterrupt('cleaning up')

const program = new Command('playground')
  .description(
    'A real Kubernetes cluster on one Linux machine: control plane and worker nodes in namespaces.',
  )
  .option('--name <name>', `cluster's name (or $UNDERSTUDY_PLAYGROUND; default ${DEFAULT_NAME})`)
  .enablePositionalOptions()
  .exitOverride()

program
  .command('up')
  .description('start the cluster and install the operator; quick if it is already up')
  .option('--nodes <n>', 'worker nodes', parseCount, 3)
  .option('--bare', 'without images and operator')
  .option('--image <archive...>', 'more image archives for the nodes')
  .action(async (options: { nodes: number; bare?: true; image?: string[] }) => {
    const started = performance.now()
    const own = options.bare === true ? [] : imageNames
    const cluster = await up({
      name: program.opts<Common>().name,
      nodes: options.nodes,
      images: async inner => [...(await imageArchives(own, progress, inner)), ...(options.image ?? [])],
      progress,
      signal,
    })
    if (options.bare !== true) await deployOperator(cluster, { progress, signal })
    printUsage(cluster, (performance.now() - started) / 1000)
  })

program
  .command('down')
  .description('take the cluster down and leave no part of it')
  .action(() => down(program.opts<Common>().name, { progress, signal }))

program
  .command('status')
  .description(
    'health of the components, and counts of what the cluster has on this machine (all 0 after "down")',
  )
  .option('--json', 'as JSON')
  .option('--all', 'every cluster on this machine')
  .action(async (options: { json?: true; all?: true }) => {
    const statuses =
      options.all === true ? await allStatuses() : [await statusOf(program.opts<Common>().name)]
    const value = options.all === true ? statuses : statuses[0]
    console.log(
      options.json === true ? JSON.stringify(value, undefined, 2) : statuses.map(formatStatus).join('\n'),
    )
    if (statuses.some(it => it.state === 'broken' || it.state === 'degraded')) process.exitCode = 1
  })

program
  .command('kubeconfig')
  .description("print the path of the administrator's kubeconfig")
  .action(async () => console.log((await existing()).kubeconfigPath))

program
  .command('kill-node')
  .description('simulate a power cut: take the link down and kill every process of the node')
  .argument('<node>', 'such as 2 or n2')
  .action(async (node: string) => {
    const cluster = await existing()
    await progress.step(`power off ${nodeName(node)}`, () => cluster.killNode(nodeName(node)))
  })

program
  .command('start-node')
  .description('power the node on again; returns when the node is Ready')
  .argument('<node>', 'such as 2 or n2')
  .action(async (node: string) => (await existing()).startNode(nodeName(node), { progress, signal }))

program
  .command('cut-node')
  .description('unplug the node from the network; everything on it runs on')
  .argument('<node>', 'such as 2 or n2')
  .action(async (node: string) => (await existing()).cutNode(nodeName(node)))

program
  .command('join-node')
  .description('plug the node in again')
  .argument('<node>', 'such as 2 or n2')
  .action(async (node: string) => (await existing()).joinNode(nodeName(node)))

program
  .command('pause-node')
  .description('stop all processes of the node, as a hypervisor does')
  .argument('<node>', 'such as 2 or n2')
  .action(async (node: string) => (await existing()).pauseNode(nodeName(node)))

program
  .command('resume-node')
  .description('let a node go on that was paused')
  .argument('<node>', 'such as 2 or n2')
  .action(async (node: string) => (await existing()).resumeNode(nodeName(node)))

program
  .command('load')
  .description('import image archives on all nodes')
  .argument('<archive...>')
  .action(async (archives: string[]) => (await existing()).loadImages(archives, { progress, signal }))

program
  .command('exec')
  .description(
    "run a program in a node's network, where addresses of Services work; --inside: with the node's files",
  )
  .option('--inside', 'use all namespaces of the node, for instance for ctr, nft, ip')
  .argument('<node>', 'such as 2, n2 or cp')
  .argument('<program...>')
  .passThroughOptions()
  .action(async (node: string, argv: string[], options: { inside?: true }) => {
    const cluster = await existing()
    const name = nodeName(node)
    await attached(
      options.inside === true ? cluster.argvOnNode(name, argv) : cluster.argvInNetwork(name, argv),
    )
  })

program
  .command('logs')
  .description('print the end of a log; without arguments, list the logs')
  .argument('[machine]', 'cp or a node')
  .argument('[service]', 'kubelet, containerd, kube-apiserver, audit, ...')
  .option('-f, --follow', 'keep printing new lines')
  .option('-n, --lines <n>', 'number of lines', parseCount, 50)
  .action(
    async (
      machine: string | undefined,
      service: string | undefined,
      options: { follow?: true; lines: number },
    ) => {
      const { logs } = clusterPaths(clusterName(program.opts<Common>().name))
      if (machine === undefined || service === undefined) {
        for (const log of await listLogs(logs)) console.log(log)
        return
      }
      const path = `${logs}/${nodeName(machine)}/${service}.log`
      if (!(await exists(path))) {
        throw new PlaygroundError(`no file ${path}`, {
          advice: 'npm run playground -- logs   lists the logs',
        })
      }
      await attached(['tail', '-n', String(options.lines), ...(options.follow === true ? ['-F'] : []), path])
    },
  )

function parseCount(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number above 0')
  return value
}

function nodeName(text: string): string {
  return /^\d+$/.test(text) ? `n${text}` : text
}

async function existing(): Promise<Cluster> {
  const { name } = program.opts<Common>()
  const cluster = await openCluster(name)
  if (cluster !== undefined) return cluster
  throw new PlaygroundError(`cluster ${clusterName(name)} is not up`, { advice: 'npm run playground -- up' })
}

async function imageArchives(
  names: typeof imageNames,
  to: Progress,
  inner: AbortSignal | undefined,
): Promise<string[]> {
  if (names.length === 0) return []
  const images = await to.step('images', step =>
    ensureImages(names, { progress: step.detail, ...(inner && { signal: inner }) }),
  )
  return Object.values(images).map(image => image.path)
}

async function listLogs(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true }).catch(() => [])
  return entries
    .filter(it => it.isFile())
    .map(it => `${it.parentPath}/${it.name}`)
    .sort()
}

/** Runs a program with our terminal and adopts its exit code. */
async function attached(argv: readonly string[]): Promise<void> {
  const [file = '', ...args] = argv
  const child = spawn(file, args, { stdio: 'inherit' })
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', code => resolve(code ?? 1))
  })
}

function printUsage(cluster: Cluster, seconds: number): void {
  const { name } = cluster
  const option = name === DEFAULT_NAME ? '' : ` --name ${name}`
  console.log(`
cluster ${name} is up (${seconds.toFixed(1)} s): ${cluster.nodes.length} nodes

  export KUBECONFIG=${cluster.kubeconfigPath}
  alias kubectl=${cluster.kubectl}
  kubectl get nodes

  npm run playground --${option} kill-node 2      power cut; start-node 2 ends it
  npm run playground --${option} cut-node 2       network cut; join-node 2 ends it
  npm run playground --${option} exec 1 curl ...  from a node's network, where Services' addresses work
  npm run playground --${option} down             take everything down
`)
}

try {
  await program.parseAsync()
} catch (error) {
  // Commander has already printed the error.
  if (error instanceof CommanderError) process.exitCode = error.exitCode
  // After an abort, every error is a consequence of it.
  else if (signal.aborted) process.exitCode = 130
  else {
    console.error(`\n${await explain(error)}`)
    process.exitCode = 1
  }
}
