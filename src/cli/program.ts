import { Argument, Command, CommanderError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addActions } from './commands/actions.ts'
import { addLooks } from './commands/looks.ts'
import { complete } from './completion/complete.ts'
import { completionScript, type Shell, shells } from './completion/scripts.ts'
import { embeddedPage, type PageAssets } from './dashboard/assets.ts'
import { exitCodes, explain, failureLines } from './failure.ts'
import { seconds } from './output/duration-option.ts'
import { type CommonOptions, openSession, type Perform } from './session.ts'
import { colourChoices, type Terminal } from './terminal.ts'

const { version } = packageJson
/** The scripts of `completion` call this command. kubectl's plugins have the same one. */
const completing = '__complete'

/**
 * Runs one command line (without node and program).
 *
 * @param signal fires when the user interrupts the command.
 * @param page what `dashboard` serves. Only tests choose it: the build embeds it.
 * @returns the exit code, after all output has been written.
 */
export async function runCli(
  args: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
  page = embeddedPage,
): Promise<number> {
  let exitCode: number = exitCodes.done
  let server: string | undefined
  const perform: Perform = async (command, act) => {
    const options = command.optsWithGlobals<CommonOptions>()
    terminal.choose(options.color ?? 'auto')
    const session = await openSession(options, { terminal, version, signal })
    server = session.server
    try {
      const code = await act(session)
      if (typeof code === 'number') exitCode = code
    } finally {
      await session.api.close()
    }
  }
  try {
    const root = program(terminal, perform, page)
    if (args[0] === completing) {
      const lines = await complete(root, args.slice(1), { terminal, version, signal })
      terminal.out(lines.join('\n'))
      return exitCode
    }
    await root.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    if (signal.aborted) return exitCodes.interrupted
    const told = explain(error, server)
    for (const line of failureLines(told)) terminal.err(line)
    return told.exitCode
  } finally {
    terminal.close()
  }
}

function program(terminal: Terminal, perform: Perform, page: PageAssets | undefined): Command {
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
    .option('--as <user>', 'user to impersonate')
    .option('--as-group <group>', 'group to impersonate; repeat it for several', appended)
    .option('--request-timeout <duration>', 'maximum time of a single request; 0: no limit', seconds)
    .addOption(new Option('-o, --output <format>', 'output format').choices(['wide', 'json', 'yaml']))
    .addOption(new Option('--color <when>', 'colours').choices(colourChoices).default('auto'))
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
  addLooks(root, perform, page)
  addActions(root, perform)
  root
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell, or kubectl itself').choices(shells))
    .description('Print the script that completes command lines, with the names of the cluster.')
    .action((shell: Shell) => terminal.out(completionScript(shell)))
  return root
}

const appended = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]
