// Long because it has every command with its options.
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { type CheckpointOptions, checkpoint } from './checkpoint/checkpoint.ts'
import { type CloneOptions, clone } from './clone/clone.ts'
import { type DoctorOptions, doctor } from './doctor/doctor.ts'
import { type DrillOptions, drill } from './drill/drill.ts'
import { exitCodes, explain } from './failure.ts'
import { type FenceOptions, fence, unfence } from './fence/fence.ts'
import { type EvacuateOptions, evacuate } from './move/evacuate.ts'
import { type MigrationsOptions, showMigrations } from './move/migrations.ts'
import { type MoveOptions, move } from './move/move.ts'
import { type PromoteOptions, promote } from './promote/promote.ts'
import { type CommonOptions, openSession, type Session } from './session.ts'
import { type StatusOptions, status } from './status/status.ts'
import { resume, type SuspendOptions, suspend } from './suspend/suspend.ts'
import type { Terminal } from './terminal.ts'
import { type UninstallOptions, uninstall } from './uninstall/uninstall.ts'

const { version } = packageJson

/**
 * Runs one command line (without node and program).
 *
 * @param signal fires when the user interrupts the command.
 * @returns the exit code, after all output has been written.
 */
export async function runCli(
  args: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  let exitCode: number = exitCodes.done
  let server: string | undefined
  const perform = async (command: Command, act: (session: Session) => Promise<number | undefined>) => {
    const session = await openSession(command.optsWithGlobals<CommonOptions>(), { terminal, version, signal })
    server = session.server
    try {
      exitCode = (await act(session)) ?? exitCodes.done
    } finally {
      await session.api.close()
    }
  }
  try {
    await program(terminal, perform).parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    if (signal.aborted) return exitCodes.interrupted
    const told = explain(error, server)
    terminal.err(`error: ${told.message}`)
    if (told.advice !== undefined) terminal.err(`  → ${told.advice}`)
    return told.exitCode
  }
}

type Perform = (command: Command, act: (session: Session) => Promise<number | undefined>) => Promise<void>

function program(terminal: Terminal, perform: Perform): Command {
  const root = new Command('kubectl understudy')
    .description(
      'Manages BackupPodSets: shows their protection and problems, and performs planned failovers.',
    )
    .version(version)
    .option('-n, --namespace <name>', 'namespace; default: the namespace of the context')
    .option(
      '--kubeconfig <file>',
      'kubeconfig; default: $KUBECONFIG, else ~/.kube/config; in a pod its service account',
    )
    .option('--context <name>', 'context of the kubeconfig; default: the current context')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['wide', 'json']))
    .exitOverride()
    .configureOutput({
      writeOut: text => terminal.out(text.trimEnd()),
      writeErr: text => terminal.err(text.trimEnd()),
    })
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .addHelpText(
      'after',
      `
Exit codes: 0 done; 1 failed, or something is broken; 2 wrong usage; 3 refused, memory would be lost;
4 not done within --timeout; 130 interrupted.`,
    )
  for (const add of [
    addStatus,
    addDoctor,
    addCheckpoint,
    addPromote,
    addMove,
    addEvacuate,
    addMigrations,
    addSuspend,
    addClone,
    addDrill,
    addFence,
    addUninstall,
  ])
    add(root, perform)
  return root
}

function addStatus(root: Command, perform: Perform): void {
  root
    .command('status [set]')
    .description('Show all sets, or one set with its slots, pods, nodes and problems.')
    .option('-A, --all-namespaces', 'show the sets of all namespaces')
    .option('-w, --watch', 'watch, and show each change, until Ctrl-C')
    .action(async (name: string | undefined, options: StatusOptions, command: Command) =>
      perform(command, async session => {
        await status(session, name, options)
        return undefined
      }),
    )
}

function addDoctor(root: Command, perform: Perform): void {
  root
    .command('doctor')
    .description(
      'Examine the installation, the nodes, your rights and all sets; exits with 1 if something is broken.',
    )
    .option('--operator-namespace <name>', 'namespace of the operator', 'understudy-system')
    .option('--agent-namespace <name>', 'namespace of the agents', 'understudy-agents')
    .action(async (options: DoctorOptions, command: Command) =>
      perform(command, session => doctor(session, options)),
    )
}

function addCheckpoint(root: Command, perform: Perform): void {
  root
    .command('checkpoint <set>')
    .description('Save the memory of the primaries now, and print its generation and the nodes that have it.')
    .option('--slot <number>', 'only this slot; default: all', natural)
    .option('--wait', 'wait until a successor could resume with it')
    .option('--timeout <seconds>', 'maximum wait', natural, defaultTimeout)
    .action(async (name: string, options: CheckpointOptions, command: Command) =>
      perform(command, async session => {
        await checkpoint(session, name, options)
        return undefined
      }),
    )
}

function addPromote(root: Command, perform: Perform): void {
  root
    .command('promote')
    .argument('<set>')
    .argument('<slot>', 'number of the slot', natural)
    .description(
      'Planned failover of one slot: a hot backup takes it over with all its memory while its primary is stopped. ' +
        'If only a cold backup or a new pod could, the memory is saved and the primary deleted; changes in between are lost.',
    )
    .option('--delete', 'save and delete the primary, even if a hot backup could take over')
    .option('--allow-state-loss', 'promote even if the successor would start without the memory')
    .option(
      '--timeout <seconds>',
      'maximum wait for the checkpoint, and again for the failover',
      natural,
      defaultTimeout,
    )
    .action(async (name: string, slot: number, options: PromoteOptions, command: Command) =>
      perform(command, async session => {
        await promote(session, name, slot, options)
        return undefined
      }),
    )
}

function addMove(root: Command, perform: Perform): void {
  root
    .command('move')
    .argument('<set>')
    .argument('<slot>', 'number of the slot', natural)
    .description(
      'Move the primary of a slot to another node, with all its memory. It is stopped only while its last changes ' +
        'are saved and transferred. It creates a Migration and follows it; Ctrl-C calls the move off.',
    )
    .option('--to <node>', 'the node; default: any other one')
    .option('--max-downtime <duration>', 'do not stop the primary for longer, such as 300ms')
    .option('--timeout <seconds>', 'maximum wait; then the move is called off', natural, 900)
    .action(async (name: string, slot: number, options: MoveOptions, command: Command) =>
      perform(command, async session => {
        await move(session, name, slot, options)
        return undefined
      }),
    )
}

function addEvacuate(root: Command, perform: Perform): void {
  root
    .command('evacuate <node>')
    .description(
      'Cordon a node, and show how the operator moves all primaries whose memory is kept to other nodes. `kubectl drain` ' +
        'does the same and evicts the other pods, too. Ctrl-C ends only this command: `kubectl uncordon` calls off the ' +
        'moves that have not been made.',
    )
    .option(
      '--timeout <seconds>',
      'maximum wait for all pods; the operator continues afterwards',
      natural,
      900,
    )
    .action(async (node: string, options: EvacuateOptions, command: Command) =>
      perform(command, async session => {
        await evacuate(session, node, options)
        return undefined
      }),
    )
}

function addMigrations(root: Command, perform: Perform): void {
  root
    .command('migrations')
    .description('Show the moves of pods: those that are under way, what they wait for, and the last ones.')
    .option('-A, --all-namespaces', 'show the Migrations of all namespaces')
    .option('-w, --watch', 'watch, and show each change, until Ctrl-C')
    .action(async (options: MigrationsOptions, command: Command) =>
      perform(command, async session => {
        await showMigrations(session, options)
        return undefined
      }),
    )
}

function addSuspend(root: Command, perform: Perform): void {
  root
    .command('suspend <name>')
    .description(
      'End the pods of a MigratingPod or of a set, with their memory: each primary is stopped and saved up to its last ' +
        'instruction first, and keeps running while that is not possible. Nodes keep the memory until `resume`.',
    )
    .option('--timeout <seconds>', 'maximum wait; the operator continues afterwards', natural, 300)
    .action(async (name: string, options: SuspendOptions, command: Command) =>
      perform(command, async session => {
        await suspend(session, name, options)
        return undefined
      }),
    )
  root
    .command('resume <name>')
    .description('Take that back: the primaries continue with their memory, on any nodes that can take it.')
    .option('--timeout <seconds>', 'maximum wait; the operator continues afterwards', natural, 300)
    .action(async (name: string, options: SuspendOptions, command: Command) =>
      perform(command, async session => {
        await resume(session, name, options)
        return undefined
      }),
    )
}

function addClone(root: Command, perform: Perform): void {
  root
    .command('clone <pod>')
    .description(
      'Create a MigratingPod that begins with a copy of the memory of a pod, which runs on: a primary of a set that keeps ' +
        'memory, or the pod of a MigratingPod. It has the template of that pod. The state is the one that was saved last.',
    )
    .requiredOption('--name <name>', 'name of the new MigratingPod')
    .option('--timeout <seconds>', 'maximum wait; the operator continues afterwards', natural, 300)
    .action(async (pod: string, options: CloneOptions, command: Command) =>
      perform(command, async session => {
        await clone(session, pod, options)
        return undefined
      }),
    )
}

function addDrill(root: Command, perform: Perform): void {
  root
    .command('drill <set>')
    .description(
      'Delete one primary of a set that allows it, as a failure would end it, and measure how its slot continues. ' +
        'Changes since the last save are lost. The set needs the annotation backup.example.com/drill: "allowed".',
    )
    .option('--slot <number>', 'this slot; default: any', natural)
    .option('--timeout <seconds>', 'maximum wait for a successor that serves', natural, defaultTimeout)
    .action(async (name: string, options: DrillOptions, command: Command) =>
      perform(command, async session => {
        await drill(session, name, options)
        return undefined
      }),
    )
}

function addFence(root: Command, perform: Perform): void {
  root
    .command('fence <node>')
    .description(
      'Declare that nothing runs on a node any more: its primaries get their successors at once. ' +
        'Use it for a node that is off, or cut off for good; it puts the taint node.kubernetes.io/out-of-service on the node.',
    )
    .option('--force', 'also while the node is Ready')
    .action(async (node: string, options: FenceOptions, command: Command) =>
      perform(command, async session => {
        await fence(session, node, options)
        return undefined
      }),
    )
  root
    .command('unfence <node>')
    .description('Take that back, once the node has been started again.')
    .action(async (node: string, _: object, command: Command) =>
      perform(command, async session => {
        await unfence(session, node)
        return undefined
      }),
    )
}

function addUninstall(root: Command, perform: Perform): void {
  root
    .command('uninstall')
    .description(
      'Make the agents leave their nodes: no saved memory, key, process, mount or label remains there. ' +
        'Waits until that is done; after that you can delete the objects of the installation.',
    )
    .option('--allow-state-loss', 'uninstall even while sets keep memory')
    .option('--timeout <seconds>', 'maximum wait', natural, uninstallTimeout)
    .action(async (options: UninstallOptions, command: Command) =>
      perform(command, async session => {
        await uninstall(session, options)
        return undefined
      }),
    )
}

/** Seconds. */
const defaultTimeout = 60
const uninstallTimeout = 300

function natural(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('must be a whole number')
  return Number(text)
}
