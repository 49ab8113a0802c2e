import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { Command, InvalidArgumentError, Option } from 'commander'
import { type Logger, pino, stdTimeFunctions } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { runAgent } from './agent/agent.ts'
import { type AgentOptions, defaults as agentDefaults, budgetOf } from './agent/options.ts'
import { type InjectedResources, injectedResources } from './api/injected-resources.ts'
import { memoryNamespaces, memoryPermission } from './api/memory-permission.ts'
import { runOperator } from './operator/operator.ts'
import { defaults, type OperatorOptions } from './operator/options.ts'

const { version } = packageJson

type AgentArguments = Omit<AgentOptions, 'memoryBudget'> & {
  readonly memoryLimit?: number
  readonly memoryBudget?: number
}

const percent = (text: string): number => {
  const value = natural(1)(text)
  if (value > 100) throw new InvalidArgumentError('at most 100')
  return value
}

const natural = (lowest: number) => (text: string) => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < lowest)
    throw new InvalidArgumentError(`needs a whole number of at least ${lowest}`)
  return value
}

/** Parses `cpu=10m,memory=16Mi`; an omitted part keeps its default. */
function parseInjected(text: string): InjectedResources {
  const given = text.split(',').map(part => /^(cpu|memory)=(\d+(?:\.\d+)?(?:m|k|M|G|Ki|Mi|Gi)?)$/.exec(part))
  if (given.includes(null)) throw new InvalidArgumentError('needs quantities, as in cpu=10m,memory=16Mi')
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
    // pino has written this when the call returns. Open handles must not keep an idle process alive.
    log.fatal({ err: error }, 'cannot go on')
    process.exit(1)
  }
}

const program = new Command('understudy')
  .description('Keeps understudies ready for pods whose memory matters.')
  .version(version)

program
  .command('operator')
  .description('Run the controllers; in the cluster, or outside of it with a kubeconfig.')
  .option('--namespace <name>', 'own namespace, for its Lease and its Secret', 'understudy-system')
  .option('--agents-namespace <name>', 'namespace of the agents, for their Secret', defaults.agentsNamespace)
  .addOption(
    new Option(
      '--memory-namespaces <which>',
      `where sets may ask for memory: in namespaces with the label ${memoryPermission.label}=${memoryPermission.value}, or in all`,
    )
      .choices(memoryNamespaces)
      .default(defaults.memoryNamespaces),
  )
  .option('--waker-image <image>', 'image of the gate of cold backups', `understudy.invalid/waker:${version}`)
  .option(
    '--injected-resources <cpu=…,memory=…>',
    'requests and limits of the gate and of what brings it, in pods whose containers have any',
    parseInjected,
    injectedResources,
  )
  .option('--identity <name>', 'this process among the replicas', `${hostname()}_${randomUUID().slice(0, 8)}`)
  .option(
    '--kubeconfig <file>',
    'default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config',
  )
  .option('--workers <n>', 'passes over different sets at the same time', natural(1), defaults.workers)
  .option('--connections <n>', 'connections for bulk requests', natural(1), defaults.connections)
  .addOption(
    new Option(
      '--state-store <url>',
      'where history and pulled state outlive the operator: memory (they do not), redis://[user@]host[:port][/db], rediss:// for TLS',
    )
      .env('UNDERSTUDY_STATE_STORE')
      .default(defaults.stateStore),
  )
  .option('--state-store-ca <file>', 'certificates to trust for rediss://, PEM')
  .option(
    '--state-budget <bytes>',
    'memory for pulled states of all sets together, at most half of it for one namespace; default: a third of what this process may use',
    natural(1),
    defaults.stateBudget,
  )
  .option('--no-leader-elect', 'lead at once, for development with a single process')
  .option('--health-port <port>', '/healthz and /readyz; 0: any free one', natural(0), defaults.healthPort)
  .option('--metrics-port <port>', '/metrics; 0: any free one', natural(0), defaults.metricsPort)
  .addOption(
    new Option('--log-level <level>', 'what is logged')
      .choices(['debug', 'info', 'warn', 'error'])
      .default(defaults.logLevel),
  )
  // From the environment only: arguments are visible to every user who may list processes.
  .action((options: OperatorOptions) =>
    run(runOperator, {
      ...options,
      stateStorePassword: process.env['UNDERSTUDY_STATE_STORE_PASSWORD'] || undefined,
    }),
  )

program
  .command('agent')
  .description("Run the agent of a node: saves primaries' memory, keeps that of others, brings it back.")
  .requiredOption('--node <name>', 'the node it runs on')
  .requiredOption('--address <address>', 'address of the node, for agents of other nodes')
  .option(
    '--kubeconfig <file>',
    'default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config',
  )
  .option('--peer-port <port>', 'for agents of other nodes', natural(1), agentDefaults.peerPort)
  .option(
    '--health-port <port>',
    '/healthz and /readyz; 0: any free one',
    natural(0),
    agentDefaults.healthPort,
  )
  .option('--metrics-port <port>', '/metrics; 0: any free one', natural(0), agentDefaults.metricsPort)
  .option('--memory-limit <bytes>', "of the agent's container: half of it is for generations", natural(1))
  .option(
    '--memory-budget <bytes>',
    `for generations, whatever the limit is (default: half of the limit, else ${agentDefaults.memoryBudget})`,
    natural(1),
  )
  .option(
    '--namespace-share <percent>',
    'of what other namespaces leave of the memory for generations, for those of one; 100: the first takes all',
    percent,
    agentDefaults.namespaceShare,
  )
  .option(
    '--disk-budget <bytes>',
    "for generations on the node's disk, encrypted; 0: none",
    natural(0),
    agentDefaults.diskBudget,
  )
  .option(
    '--disk-interval <seconds>',
    'between two copies of one slot on the disk',
    natural(1),
    agentDefaults.diskInterval,
  )
  .option('--namespace <name>', 'of the agents, with their Secret', agentDefaults.namespace)
  .option(
    '--operator-namespace <name>',
    'where operators elect their leader',
    agentDefaults.operatorNamespace,
  )
  .option('--run-directory <path>', 'what is gone with the boot', agentDefaults.runDirectory)
  .option(
    '--state-directory <path>',
    "programs on the node, and the agent's key",
    agentDefaults.stateDirectory,
  )
  .option('--binaries <path>', 'native programs in the image', agentDefaults.binaries)
  .addOption(
    new Option('--log-level <level>', 'what is logged')
      .choices(['debug', 'info', 'warn', 'error'])
      .default(agentDefaults.logLevel),
  )
  .action(({ memoryLimit, memoryBudget, ...options }: AgentArguments) =>
    run(runAgent, {
      ...options,
      memoryBudget:
        memoryBudget ?? (memoryLimit === undefined ? agentDefaults.memoryBudget : budgetOf(memoryLimit)),
    }),
  )

program
  .command('version')
  .description('Print the version.')
  .action(() => console.log(version))

await program.parseAsync()
