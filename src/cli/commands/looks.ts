/** The commands that change nothing. */
import type { Command } from 'commander'
import { type DoctorOptions, doctor } from '../doctor/doctor.ts'
import { type MigrationsOptions, showMigrations } from '../move/migrations.ts'
import type { Perform } from '../session.ts'
import { type StatusOptions, status } from '../status/status.ts'

export function addLooks(root: Command, perform: Perform): void {
  for (const add of [addStatus, addDoctor, addMigrations]) add(root, perform)
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
