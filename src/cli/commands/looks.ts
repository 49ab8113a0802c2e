/** The commands that change nothing. */
import { type Command, InvalidArgumentError } from 'commander'
import type { PageAssets } from '../dashboard/assets.ts'
import { type DashboardOptions, dashboard } from '../dashboard/dashboard.ts'
import { type DoctorOptions, doctor } from '../doctor/doctor.ts'
import type { Places } from '../doctor/installation.ts'
import { type LogsOptions, logs } from '../logs/logs.ts'
import { type MigrationsOptions, showMigrations } from '../move/migrations.ts'
import { seconds } from '../output/duration-option.ts'
import { type ReportOptions, report } from '../report/report.ts'
import type { Perform } from '../session.ts'
import { type StatusOptions, status } from '../status/status.ts'
import { showVersions } from '../version/version.ts'

export function addLooks(root: Command, perform: Perform, page: PageAssets | undefined): void {
  for (const add of [addStatus, addDoctor, addMigrations, addVersion, addLogs, addReport]) add(root, perform)
  addDashboard(root, perform, page)
}

function addDashboard(root: Command, perform: Perform, page: PageAssets | undefined): void {
  root
    .command('dashboard')
    .description(
      'Serve a live page of sets, slots, failovers and moves to browsers on this machine, with your rights, until Ctrl-C.',
    )
    .option('-A, --all-namespaces', 'show the sets of all namespaces')
    .option('--port <number>', 'port of 127.0.0.1 and ::1; 0: any that is free', portNumber, 0)
    .action(async (options: DashboardOptions, command: Command) =>
      perform(command, async session => {
        await dashboard(session, options, page)
        return undefined
      }),
    )
}

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('must be a number from 0 to 65535')
  return port
}

function addStatus(root: Command, perform: Perform): void {
  root
    .command('status [set]')
    .description('Show all sets, or one set with its slots, pods, nodes and problems.')
    .option('-A, --all-namespaces', 'show the sets of all namespaces')
    .option('-w, --watch', 'watch, and show each change, until Ctrl-C')
    .action(async (name: string | undefined, options: StatusOptions, command: Command) =>
      perform(command, session => status(session, name, options)),
    )
}

function addDoctor(root: Command, perform: Perform): void {
  withPlaces(root.command('doctor'))
    .description(
      'Examine the installation, the nodes, your rights and all sets; exits with 1 if something is broken.',
    )
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
      perform(command, session => showMigrations(session, options)),
    )
}

const withPlaces = (command: Command): Command =>
  command
    .option('--operator-namespace <name>', 'namespace of the operator', 'understudy-system')
    .option('--agent-namespace <name>', 'namespace of the agents', 'understudy-agents')

function addVersion(root: Command, perform: Perform): void {
  withPlaces(root.command('version'))
    .description(
      'Show the versions of this program, the operator, the agents and the kinds, and what does not fit.',
    )
    .action(async (options: Places, command: Command) =>
      perform(command, session => showVersions(session, options)),
    )
}

/** Seconds. */
const logsSince = 3_600

function addLogs(root: Command, perform: Perform): void {
  withPlaces(root.command('logs <set>'))
    .description(
      'Show what the operator and the agents on the nodes of a set have logged about it, by time. It needs the right to read ' +
        'the logs of these pods.',
    )
    .option('-f, --follow', 'also show new lines, until Ctrl-C')
    .option('--since <duration>', 'lines that are not older', seconds, logsSince)
    .option('--all', 'also lines that are not about the set')
    .action(async (name: string, options: LogsOptions, command: Command) =>
      perform(command, session => logs(session, name, options)),
    )
}

function addReport(root: Command, perform: Perform): void {
  withPlaces(root.command('report'))
    .description(
      'Write a support bundle: objects, events, logs, nodes and the findings of `doctor`. It has no memory, state, Secrets, ' +
        'values of variables, or labels and annotations of users.',
    )
    .option('--file <path>', 'the archive; default: understudy-report-TIME.tar.gz in this directory')
    .option('--since <duration>', 'lines of logs that are not older', seconds, logsSince)
    .action(async (options: ReportOptions, command: Command) =>
      perform(command, session => report(session, options)),
    )
}
