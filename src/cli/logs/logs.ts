import { isKubeError } from '../../kube/errors.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Places } from '../doctor/installation.ts'
import { CliError } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { isData } from '../output/answer.ts'
import type { Session } from '../session.ts'
import { painter } from '../terminal.ts'
import { fieldsOf, isAbout, rendered } from './line.ts'
import { byTime, installationPods, type LogLine, type LogQuery, nodesOfSet, readLog } from './sources.ts'

export interface LogsOptions extends Places {
  readonly follow?: boolean
  /** Also lines that are not about the set. */
  readonly all?: boolean
  /** Seconds. */
  readonly since: number
}

/** How often new lines are read, ms. More pods are read less often: each reading is a request. */
const pollMs = 1_000
const pollMsOfPod = 50
/** How often new pods are looked for, ms. */
const lookMs = 10_000

/**
 * Prints the logs of the operator and of the agents on the nodes of a set, by time; with `follow` also those that come,
 * until the session ends.
 *
 * @throws CliError, KubeError.
 */
export async function logs(session: Session, name: string, options: LogsOptions): Promise<void> {
  const { clock, signal, progress, namespace, terminal } = session
  await findSet(session, name)
  const seen = new Map<string, string>()
  const shown = (line: LogLine) => options.all === true || isAbout(fieldsOf(line.text), namespace, name)
  const print = (lines: readonly LogLine[]) => {
    for (const line of [...lines].sort(byTime)) if (shown(line)) terminal.out(textOf(session, line))
  }
  let sources = await progress.wait('find the pods of the installation', () =>
    sourcesOf(session, name, options),
  )
  const since = new Date(clock.now() - options.since * 1000).toISOString()
  let lookedAt = clock.monotonic()
  print(await progress.wait(`read ${sources.length} logs`, () => readAll(session, sources, seen, since)))
  if (options.follow !== true) return
  try {
    for (;;) {
      await clock.sleep(Math.max(pollMs, sources.length * pollMsOfPod), signal)
      if (clock.monotonic() - lookedAt >= lookMs) {
        sources = await sourcesOf(session, name, options).catch((error: unknown) =>
          told(session, error, sources),
        )
        lookedAt = clock.monotonic()
      }
      print(await readAll(session, sources, seen, since))
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Reports a failure of the API server to the user, and returns a value with which the command continues. */
function told<T>({ terminal, signal }: Session, error: unknown, instead: T): T {
  if (signal.aborted || !isKubeError(error, 'Unavailable', 'Timeout', 'Throttled')) throw error
  terminal.err(`lost the API server, retrying: ${error.message}`)
  return instead
}

async function sourcesOf(session: Session, name: string, places: Places): Promise<readonly Pod[]> {
  const { operators, agents } = await installationPods(session, places)
  const nodes = await nodesOfSet(session, name)
  const found = [...operators, ...agents.filter(({ spec }) => nodes.has(spec?.nodeName ?? ''))]
  if (found.length === 0)
    throw new CliError(`there are no pods of Understudy in ${places.operatorNamespace}`, {
      advice: 'name its namespaces with --operator-namespace and --agent-namespace',
    })
  return found
}

/** Reads what is new since the last reading. `seen` has the time of the last line of each pod. */
async function readAll(
  session: Session,
  sources: readonly Pod[],
  seen: Map<string, string>,
  since: string,
): Promise<readonly LogLine[]> {
  const all = await Promise.all(
    sources.map(async pod => {
      const key = pod.metadata.uid
      const last = seen.get(key)
      const query: LogQuery = { sinceTime: `${(last ?? since).slice(0, 19)}Z` }
      const lines = await readLog(session, pod, query).catch((error: unknown) => {
        // It has not started yet, or is gone: its lines come later, or never.
        if (isKubeError(error, 'NotFound', 'BadRequest')) return []
        return told<readonly LogLine[]>(session, error, [])
      })
      const news = lines.filter(({ at }) => last === undefined || at > last)
      const latest = news.at(-1)
      if (latest !== undefined) seen.set(key, latest.at)
      return news
    }),
  )
  return all.flat()
}

function textOf({ output, terminal }: Session, line: LogLine): string {
  if (!isData(output)) return rendered(line, painter(terminal.colour))
  const { at, pod, text } = line
  // One line of JSON for each: programs read them while they come. It is YAML as well.
  return `${output === 'yaml' ? '--- ' : ''}${JSON.stringify({ at, pod, line: fieldsOf(text) ?? text })}`
}
