// Long because it has every option of the commands in the image.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { Command, InvalidArgumentError, Option } from 'commander'
import { type Logger, pino, stdTimeFunctions } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { runAgent } from './agent/agent.ts'
import {
  type AgentOptions,
  defaults as agentDefaults,
  budgetOf,
  whenWritesAreRecorded,
} from './agent/options.ts'
import { type InjectedResources, injectedResources } from './api/injected-resources.ts'
import { memoryNamespaces, memoryPermission } from './api/memory-permission.ts'
import { runOperator } from './operator/operator.ts'
import { defaults, type OperatorOptions } from './operator/options.ts'
import { headersIn, tracesUrl } from './traces/options.ts'

const { version } = packageJson

type AgentArguments = Omit<AgentOptions, 'memoryBudget'> & {
  readonly memoryLimit?: number
  readonly memoryBudget?: number
}

const percent = (text: string): number => {
  const value = natural(1)(text)
  if (value > 100) throw new InvalidArgumentError('must be at most 100')
  return value
}

const natural = (lowest: number) => (text: string) => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < lowest)
    throw new InvalidArgumentError(`must be a whole number of at least ${lowest}`)
  return value
}

/** Where to send traces: the same for operator and agents. */
const otlpEndpoint = () =>
  new Option(
    '--otlp-endpoint <url>',
    'send a trace of each failover and of each move to this OpenTelemetry collector, by OTLP over HTTP (default: no traces)',
  )
    .env('OTEL_EXPORTER_OTLP_ENDPOINT')
    .argParser(text => {
      try {
        return text === '' ? undefined : tracesUrl(text)
      } catch (error) {
        throw new InvalidArgumentError(error instanceof Error ? error.message : String(error))
      }
    })

/** Parses `cpu=10m,memory=32Mi`; an omitted part keeps its default. */
function parseInjected(text: string): InjectedResources {
  const given = text.split(',').map(part => /^(cpu|memory)=(\d+(?:\.\d+)?(?:m|k|M|G|Ki|Mi|Gi)?)$/.exec(part))
  if (given.includes(null))
    throw new InvalidArgumentError('must be quantities, for example cpu=10m,memory=32Mi')
  return { ...injectedResources, ...Object.fromEntries(given.map(it => [it?.[1], it?.[2]])) }
}

/** Runs one of the commands until SIGTERM or SIGINT. */
async function run<T extends { readonly logLevel: string }>(
  start: (options: T, log: Logger, version: string, signal: AbortSignal) => Promise<void>,
  options: T,
): Promise<void> {
  const log = pino({
    formatters: { level: label => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    level: options.logLevel,
    redact: ['*.token', '*.wakeKeys'],
  })
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort(new Error(name)))
  try {
    await start(options, log, version, stop.signal)
    log.info('stopped')
  } catch (error) {
    log.fatal({ err: error }, 'stopped after an error')
    process.exitCode = 1
  }
  // pino has written these when its calls return. Open handles, such as a connection whose other end is silent, must not
  // keep an idle process alive until the kubelet kills it.
  process.exit()
}

const program = new Command('understudy')
  .description('Keeps understudies ready for pods whose memory matters.')
  .version(version)

program
  .command('operator')
  .description('Run the controllers, in the cluster or outside it with a kubeconfig.')
  .option(
    '--namespace <name>',
    'namespace of the operator, with its Lease and its Secret',
    'understudy-system',
  )
  // `--agents-namespace` is the name of earlier versions.
  .option(
    '--agents-namespace, --agent-namespace <name>',
    'namespace of the agents, with their Secret',
    defaults.agentNamespace,
  )
  .addOption(
    new Option(
      '--memory-namespaces <which>',
      `namespaces whose sets may keep memory: those with the label ${memoryPermission.label}=${memoryPermission.value}, or all`,
    )
      .choices(memoryNamespaces)
      .default(defaults.memoryNamespaces),
  )
  .option(
    '--pod-migration-jobs',
    'carry out PodMigrationJobs; deploy/pod-migration-jobs has their kind and the rights for them',
    defaults.podMigrationJobs,
  )
  .option(
    '--migrating-jobs',
    'manage Jobs whose pods move with their memory; deploy/migrating-jobs has the rights for them',
    defaults.migratingJobs,
  )
  .option(
    '--clone-pods',
    'carry out ClonePods; deploy/clone-pods has the kind and the rights for them',
    defaults.clonePods,
  )
  .option(
    '--migrations-per-set <n>',
    'number of pods of one BackupPodSet that move at once; drains have as many places of their own, also in the next three budgets',
    natural(1),
    defaults.migrationsPerSet,
  )
  .option(
    '--migrations-per-node <n>',
    'number of pods that move away from one node at once',
    natural(1),
    defaults.migrationsPerNode,
  )
  .option(
    '--migrations-per-namespace <n>',
    'number of pods of one namespace that move at once',
    natural(1),
    defaults.migrationsPerNamespace,
  )
  .option('--migrations <n>', 'number of pods that move at once', natural(1), defaults.migrations)
  .option('--waker-image <image>', 'image of the gate in cold backups', `understudy.invalid/waker:${version}`)
  .option(
    '--injected-resources <cpu=…,memory=…>',
    'requests and limits of the containers that the operator adds, in pods whose containers have any',
    parseInjected,
    injectedResources,
  )
  .option(
    '--identity <name>',
    'name of this replica in leader election',
    `${hostname()}_${randomUUID().slice(0, 8)}`,
  )
  .option(
    '--kubeconfig <file>',
    'kubeconfig; default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config',
  )
  .option('--workers <n>', 'number of sets that are reconciled concurrently', natural(1), defaults.workers)
  .option('--connections <n>', 'number of connections for bulk requests', natural(1), defaults.connections)
  .addOption(
    new Option(
      '--state-store <url>',
      'store for history and pulled state: memory (lost with the operator), redis://[user@]host[:port][/db], or rediss:// for TLS',
    )
      .env('UNDERSTUDY_STATE_STORE')
      .default(defaults.stateStore),
  )
  .option('--state-store-ca <file>', 'PEM file of the certificates to trust for rediss://')
  .option(
    '--state-budget <bytes>',
    'memory for the pulled states of all sets, at most half of it for one namespace; default: a third of the memory of this process',
    natural(1),
    defaults.stateBudget,
  )
  .option('--no-leader-elect', 'lead without an election, for development with a single process')
  .option(
    '--health-port <port>',
    'port of /healthz and /readyz; 0: any free port',
    natural(0),
    defaults.healthPort,
  )
  .option('--metrics-port <port>', 'port of /metrics; 0: any free port', natural(0), defaults.metricsPort)
  .addOption(otlpEndpoint())
  .addOption(
    new Option('--log-level <level>', 'lowest level that is logged')
      .choices(['debug', 'info', 'warn', 'error'])
      .default(defaults.logLevel),
  )
  // From the environment only: arguments are visible to every user who may list processes.
  .action((options: OperatorOptions) =>
    run(runOperator, {
      ...options,
      stateStorePassword: process.env['UNDERSTUDY_STATE_STORE_PASSWORD'] || undefined,
      otlpHeaders: headersIn(process.env['OTEL_EXPORTER_OTLP_HEADERS']),
    }),
  )

program
  .command('agent')
  .description(
    'Run the agent of a node: save the memory of primaries, keep memory of other nodes, and restore it.',
  )
  .requiredOption('--node <name>', 'name of the node on which the agent runs')
  .requiredOption('--address <address>', 'address of the node, at which other agents reach it')
  .option(
    '--kubeconfig <file>',
    'kubeconfig; default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config',
  )
  .option('--peer-port <port>', 'port for other agents', natural(1), agentDefaults.peerPort)
  .option(
    '--heartbeat-port <port>',
    'UDP port for heartbeats of other nodes',
    natural(1),
    agentDefaults.heartbeatPort,
  )
  .option(
    '--health-port <port>',
    'port of /healthz and /readyz; 0: any free port',
    natural(0),
    agentDefaults.healthPort,
  )
  .option(
    '--metrics-port <port>',
    'port of /metrics; 0: any free port',
    natural(0),
    agentDefaults.metricsPort,
  )
  .option(
    '--memory-limit <bytes>',
    "memory limit of the agent's container: half of it is for generations",
    natural(1),
  )
  .option(
    '--memory-budget <bytes>',
    `memory for generations, whatever the limit is (default: half of the limit, else ${agentDefaults.memoryBudget})`,
    natural(1),
  )
  .option(
    '--namespace-share <percent>',
    'maximum for one namespace, in percent of the memory and of the disk space for generations that others leave free; 100: the first namespace may take all',
    percent,
    agentDefaults.namespaceShare,
  )
  .option(
    '--disk-budget <bytes>',
    'disk space for encrypted generations on the node; 0: none',
    natural(0),
    agentDefaults.diskBudget,
  )
  .option(
    '--disk-interval <seconds>',
    'time between two disk copies of one slot',
    natural(1),
    agentDefaults.diskInterval,
  )
  .addOption(
    new Option(
      '--record-writes [when]',
      'when the kernel records which memory is written, so that checkpoints stop large pods for less time',
    )
      .choices(whenWritesAreRecorded)
      .default(agentDefaults.recordWrites)
      .preset('Always'),
  )
  .option('--no-forget-resets', "leave the node's memory of TCP connections that were reset as it is")
  .option(
    '--no-forget-unanswered',
    "leave the node's memory of TCP connections that were not answered as it is",
  )
  .option('--namespace <name>', 'namespace of the agents, with their Secret', agentDefaults.namespace)
  .option(
    '--operator-namespace <name>',
    'namespace in which operators elect their leader',
    agentDefaults.operatorNamespace,
  )
  .option(
    '--run-directory <path>',
    'directory of data that does not survive a reboot',
    agentDefaults.runDirectory,
  )
  .option(
    '--state-directory <path>',
    "directory on the node's disk for programs, the agent's key and encrypted generations",
    agentDefaults.stateDirectory,
  )
  .option('--binaries <path>', 'directory of native programs in the image', agentDefaults.binaries)
  .addOption(otlpEndpoint())
  .addOption(
    new Option('--log-level <level>', 'lowest level that is logged')
      .choices(['debug', 'info', 'warn', 'error'])
      .default(agentDefaults.logLevel),
  )
  .action(({ memoryLimit, memoryBudget, ...options }: AgentArguments) =>
    run(runAgent, {
      ...options,
      otlpHeaders: headersIn(process.env['OTEL_EXPORTER_OTLP_HEADERS']),
      memoryBudget:
        memoryBudget ?? (memoryLimit === undefined ? agentDefaults.memoryBudget : budgetOf(memoryLimit)),
    }),
  )

program
  .command('uninstall')
  .description(
    'Do what `kubectl understudy uninstall` does, with the same options: the hook of the chart runs it.',
  )
  .helpOption(false)
  .allowUnknownOption()
  .argument('[options...]')
  .action(async (options: readonly string[]) => {
    // Loaded only here: the operator and the agents have no use for it.
    const [{ runCli }, { processTerminal }] = await Promise.all([
      import('./cli/program.ts'),
      import('./cli/terminal.ts'),
    ])
    const stop = new AbortController()
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort(new Error(name)))
    process.exitCode = await runCli(['uninstall', ...options], processTerminal(), stop.signal)
  })

program
  .command('version')
  .description('Print the version.')
  .action(() => console.log(version))

await program.parseAsync()
