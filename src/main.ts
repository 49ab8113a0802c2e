import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { Command, InvalidArgumentError, Option } from 'commander'
import { pino } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { runOperator } from './operator/operator.ts'
import { defaults, type OperatorOptions } from './operator/options.ts'

const { version } = packageJson

const natural = (lowest: number) => (text: string) => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < lowest)
    throw new InvalidArgumentError(`needs a whole number of at least ${lowest}`)
  return value
}

const program = new Command('understudy')
  .description('Keeps understudies ready for pods whose memory matters.')
  .version(version)

program
  .command('operator')
  .description('Run the controllers; in the cluster, or outside of it with a kubeconfig.')
  .option('--namespace <name>', 'own namespace, for its Lease and its Secret', 'understudy-system')
  .option('--waker-image <image>', 'image of the gate of cold backups', `understudy/waker:${version}`)
  .option('--identity <name>', 'this process among the replicas', `${hostname()}_${randomUUID().slice(0, 8)}`)
  .option(
    '--kubeconfig <file>',
    'default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config',
  )
  .option('--workers <n>', 'passes over different sets at the same time', natural(1), defaults.workers)
  .option('--connections <n>', 'connections for bulk requests', natural(1), defaults.connections)
  .option('--no-leader-elect', 'lead at once, for development with a single process')
  .option('--health-port <port>', '/healthz and /readyz; 0: any free one', natural(0), defaults.healthPort)
  .option('--metrics-port <port>', '/metrics; 0: any free one', natural(0), defaults.metricsPort)
  .addOption(
    new Option('--log-level <level>', 'what is logged')
      .choices(['debug', 'info', 'warn', 'error'])
      .default(defaults.logLevel),
  )
  .action(async (options: OperatorOptions) => {
    const log = pino({ level: options.logLevel, redact: ['*.token', '*.wakeKey'] })
    const stop = new AbortController()
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort(new Error(name)))
    try {
      await runOperator(options, log, version, stop.signal)
      log.info('stopped')
    } catch (error) {
      log.fatal({ err: error }, 'cannot go on')
      process.exitCode = 1
    }
  })

program
  .command('version')
  .description('Print the version.')
  .action(() => console.log(version))

await program.parseAsync()
