import { isAgentError } from '../../api/agent-errors.ts'
import { holdDirectory } from '../../api/pod-contract.ts'
import { type BackoffPolicy, backoffMs } from '../../kube/backoff.ts'
import type { Clock } from '../../kube/clock.ts'
import { failure, type ProbeResult, success } from '../../probe/result.ts'
import type { LocatedContainer } from './container.ts'
import { type HoldOrder, orderHold } from './hold.ts'
import type { ProcFs } from './process.ts'

export type CommandRunner = (
  container: Pick<LocatedContainer, 'init' | 'name'>,
  command: readonly string[],
  signal: AbortSignal,
) => Promise<ProbeResult>

/** Most commands of probes end within the first of these pauses. */
const between: BackoffPolicy = { initialMs: 4, maxMs: 100, jitter: 0 }

/**
 * Has `hold`, the first process of an understudy's container, run a command with the user, the rights and the
 * environment of the container, like `kubectl exec`. The agent itself runs nothing. The command's output is discarded.
 */
export function createCommandRunner({
  fs,
  clock,
}: {
  readonly fs: ProcFs
  readonly clock: Clock
}): CommandRunner {
  return async ({ init, name }, command, signal) => {
    const order = (what: HoldOrder, signal?: AbortSignal) =>
      orderHold(
        {
          root: `${fs.proc}/${init.pid}/root`,
          directory: holdDirectory(name),
          clock,
          ...(signal === undefined ? {} : { signal }),
        },
        what,
      )
    try {
      const begun = await order({ order: 'run', command }, signal)
      if (begun.word === 'holding') return failure('no app runs')
      if (begun.word !== 'started') return failure(`the command cannot run: ${begun.word} ${begun.number}`)
      const pid = begun.number
      try {
        for (let tries = 0; ; tries += 1) {
          await clock.sleep(backoffMs(tries, between), signal)
          const now = await order({ order: 'wait', pid }, signal)
          if (now.word === 'running') continue
          if (now.word !== 'died') return failure(`the command was lost: ${now.word}`)
          return now.number === 0 ? success : failure(`the command ended with ${now.number}`)
        }
      } finally {
        // A command that has ended leaves no process to kill.
        if (signal.aborted) await order({ order: 'kill', pid })
      }
    } catch (error) {
      if (signal.aborted || !isAgentError(error)) throw error
      return failure(error.message)
    }
  }
}
