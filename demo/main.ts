/** `npm run demo`: the paper's story, live, on a real cluster. */
import { parseArgs } from 'node:util'
import { explain } from '../playground/failure.ts'
import { onInterrupt } from '../playground/interrupts.ts'
import { createProgress } from '../src/terminal/progress.ts'
import { createScreen, type Screen, styled } from './screen.ts'
import { currentStage, playgroundStage } from './stage.ts'
import { tell } from './tell.ts'

const usage = `npm run demo -- [options]

  --yes                   ask no questions; exit code 1 if anything differs from the story
  --name NAME             the playground to use or to bring up; default playground
  --no-keep               take the playground down at the end
  --use-current-cluster   the cluster of your kubeconfig, with the operator installed; namespace understudy-demo
  -h, --help`

interface Options {
  readonly yes: boolean
  readonly name: string | undefined
  readonly keep: boolean
  readonly usesCurrentCluster: boolean
}

function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    allowNegative: true,
    options: {
      yes: { type: 'boolean', short: 'y', default: false },
      name: { type: 'string' },
      keep: { type: 'boolean', default: true },
      'use-current-cluster': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  return {
    // Without a terminal on stdin there is no user to confirm.
    yes: values.yes || process.stdin.isTTY !== true,
    name: values.name,
    keep: values.keep,
    usesCurrentCluster: values['use-current-cluster'],
  }
}

/** @returns the deviations from the story */
async function main(options: Options, screen: Screen, signal: AbortSignal): Promise<readonly string[]> {
  screen.lines(
    styled.title('Understudy: primaries, hot backups and cold backups of one pod'),
    styled.dim('The story of the BackupPodSet paper, on real kubelets.'),
    '',
  )
  const progress = createProgress(process.stdout)
  if (options.usesCurrentCluster) {
    await using stage = await currentStage(signal)
    return await tell(stage, { yes: options.yes, stays: true }, screen, signal)
  }
  const stage = await playgroundStage(options.name, progress, signal)
  try {
    return await tell(stage, { yes: options.yes, stays: options.keep }, screen, signal)
  } finally {
    await stage[Symbol.asyncDispose]()
    if (!options.keep) await progress.step('take down', () => stage.cluster.down())
  }
}

const signal = onInterrupt('taking everything down')
try {
  const options = parseOptions(process.argv.slice(2))
  if (options === 'help') console.log(usage)
  else {
    const wrong = await main(options, createScreen(process.stdout), signal)
    for (const line of wrong) console.error(styled.bad(`DIFFERS: ${line}`))
    process.exitCode = wrong.length === 0 ? 0 : 1
  }
} catch (error) {
  if (signal.aborted) {
    console.error('npm run playground -- status --all shows what is still up')
    process.exitCode = 130
  } else {
    console.error(`\n${await explain(error)}`)
    process.exitCode = 1
  }
}
