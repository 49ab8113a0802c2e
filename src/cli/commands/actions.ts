/** The commands that change something. */
import { type Command, Option } from 'commander'
import { migrationTechniques } from '../../api/migration.ts'
import { type CheckpointOptions, checkpoint } from '../checkpoint/checkpoint.ts'
import { type CloneOptions, clone } from '../clone/clone.ts'
import { type DrillOptions, drill } from '../drill/drill.ts'
import { type FenceOptions, fence, unfence } from '../fence/fence.ts'
import { type EvacuateOptions, evacuate } from '../move/evacuate.ts'
import { type MoveOptions, move } from '../move/move.ts'
import { natural, seconds } from '../output/duration-option.ts'
import { type PauseOptions, pause } from '../pause/pause.ts'
import { type PromoteOptions, promote } from '../promote/promote.ts'
import type { Perform } from '../session.ts'
import { resume, type SuspendOptions, suspend } from '../suspend/suspend.ts'
import { type UninstallOptions, uninstall } from '../uninstall/uninstall.ts'

export function addActions(root: Command, perform: Perform): void {
  for (const add of [
    addCheckpoint,
    addPromote,
    addMove,
    addEvacuate,
    addSuspend,
    addPause,
    addClone,
    addDrill,
    addFence,
    addUninstall,
  ])
    add(root, perform)
}

/** Seconds. */
const defaultTimeout = 60
const uninstallTimeout = 300

function addCheckpoint(root: Command, perform: Perform): void {
  root
    .command('checkpoint <set>')
    .description('Save the memory of the primaries now, and print its generation and the nodes that have it.')
    .option('--slot <number>', 'only this slot; default: all', natural)
    .option('--wait', 'wait until a successor could resume with it')
    .option('--timeout <duration>', 'maximum wait', seconds, defaultTimeout)
    .action(async (name: string, options: CheckpointOptions, command: Command) =>
      perform(command, session => checkpoint(session, name, options)),
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
      '--timeout <duration>',
      'maximum wait for the checkpoint, and again for the failover',
      seconds,
      defaultTimeout,
    )
    .action(async (name: string, slot: number, options: PromoteOptions, command: Command) =>
      perform(command, session => promote(session, name, slot, options)),
    )
}

function addMove(root: Command, perform: Perform): void {
  root
    .command('move')
    .argument('<set>')
    .argument('<slot|pod>', 'number of the slot, or name of its primary')
    .description(
      'Move the primary of a slot to another node, with all its memory. It is stopped only while its last changes ' +
        'are saved and transferred. It creates a Migration and follows it; Ctrl-C calls the move off.',
    )
    .option('--to <node>', 'the node; default: any other one')
    .option('--max-downtime <duration>', 'do not stop the primary for longer, such as 300ms')
    .addOption(
      new Option(
        '--technique <technique>',
        'with --max-downtime, if the stop would be longer: Live waits, LiveIfPossible moves if a restart would take as long',
      ).choices(migrationTechniques),
    )
    .option('--timeout <duration>', 'maximum wait; then the move is called off', seconds, 900)
    .action(async (name: string, place: string, options: MoveOptions, command: Command) =>
      perform(command, session => move(session, name, place, options)),
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
      '--timeout <duration>',
      'maximum wait for all pods; the operator continues afterwards',
      seconds,
      900,
    )
    .action(async (node: string, options: EvacuateOptions, command: Command) =>
      perform(command, session => evacuate(session, node, options)),
    )
}

function addSuspend(root: Command, perform: Perform): void {
  root
    .command('suspend <name>')
    .description(
      'End the pods of a MigratingPod or of a set, with their memory: each primary is stopped and saved up to its last ' +
        'instruction first, and keeps running while that is not possible. Nodes keep the memory until `resume`.',
    )
    .option('--timeout <duration>', 'maximum wait; the operator continues afterwards', seconds, 300)
    .action(async (name: string, options: SuspendOptions, command: Command) =>
      perform(command, session => suspend(session, name, options)),
    )
  root
    .command('resume <name>')
    .description(
      'Take `suspend` and `pause` back: the primaries continue with their memory, on any nodes that can take it.',
    )
    .option('--timeout <duration>', 'maximum wait; the operator continues afterwards', seconds, 300)
    .action(async (name: string, options: SuspendOptions, command: Command) =>
      perform(command, session => resume(session, name, options)),
    )
}

function addPause(root: Command, perform: Perform): void {
  root
    .command('pause <set>')
    .description(
      'Leave the pods of a set as they are: the operator repairs no failure and makes no change. `resume` takes that back.',
    )
    .option('--timeout <duration>', 'maximum wait', seconds, defaultTimeout)
    .action(async (name: string, options: PauseOptions, command: Command) =>
      perform(command, session => pause(session, name, options)),
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
    .option('--timeout <duration>', 'maximum wait; the operator continues afterwards', seconds, 300)
    .action(async (pod: string, options: CloneOptions, command: Command) =>
      perform(command, session => clone(session, pod, options)),
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
    .option('--timeout <duration>', 'maximum wait for a successor that serves', seconds, defaultTimeout)
    .action(async (name: string, options: DrillOptions, command: Command) =>
      perform(command, session => drill(session, name, options)),
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
      perform(command, session => fence(session, node, options)),
    )
  root
    .command('unfence <node>')
    .description('Take that back, once the node has been started again.')
    .action(async (node: string, _: object, command: Command) =>
      perform(command, session => unfence(session, node)),
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
    .option('--timeout <duration>', 'maximum wait', seconds, uninstallTimeout)
    .action(async (options: UninstallOptions, command: Command) =>
      perform(command, session => uninstall(session, options)),
    )
}
