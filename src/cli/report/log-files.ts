import { isReady } from '../../kube/ready.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Places } from '../doctor/installation.ts'
import { fieldsOf } from '../logs/line.ts'
import { installationPods, type LogQuery, readLog } from '../logs/sources.ts'
import type { Session } from '../session.ts'
import type { Collecting } from './collecting.ts'
import { kept, scrubbed } from './redact.ts'
import { logLine } from './shapes.ts'
import type { TarFile } from './tar.ts'

/** The most agents whose logs are in the bundle: those that are not ready first. */
const mostAgents = 50
const tailLines = 5_000
const limitBytes = 4 * 1024 * 1024

/** Reads the logs of the installation, and those of containers that have ended. */
export async function logFiles(
  session: Session,
  { since, ...places }: Places & { readonly since: number },
  { fail, of }: Collecting,
): Promise<readonly TarFile[]> {
  const found = await installationPods(session, places).catch(fail('logs'))
  if (found === undefined) return []
  const agents = [...found.agents].sort((a, b) => Number(isReady(a)) - Number(isReady(b)))
  if (agents.length > mostAgents) fail('logs')(new Error(`${agents.length - mostAgents} agents are left out`))
  const all = [...found.operators, ...agents.slice(0, mostAgents)]
  let done = 0
  const files = await Promise.all(
    all.map(async pod => {
      const { namespace, name } = pod.metadata
      const what = `log of ${namespace}/${name}`
      const read = (query: LogQuery) => readLog(session, pod, { tailLines, limitBytes, ...query })
      const now = await read({ sinceSeconds: Math.max(Math.ceil(since), 1) }).catch(fail(what))
      const before = hasRestarted(pod)
        ? await read({ previous: true }).catch(fail(`previous ${what}`))
        : undefined
      of(++done, all.length)
      return [
        ...(now === undefined ? [] : [{ path: `logs/${namespace}/${name}.log`, text: textOf(now) }]),
        ...(before === undefined
          ? []
          : [{ path: `logs/${namespace}/${name}.previous.log`, text: textOf(before) }]),
      ]
    }),
  )
  return files.flat()
}

const hasRestarted = ({ status }: Pod): boolean =>
  status?.containerStatuses?.some(({ restartCount }) => restartCount > 0) ?? false

type Lines = Awaited<ReturnType<typeof readLog>>

function textOf(lines: Lines): string {
  const shown = lines.flatMap(({ at, text }) => {
    const line = redactedLine(text)
    return line === undefined ? [] : [`${at} ${line}`]
  })
  const out = lines.length - shown.length
  return [...shown, ...(out === 0 ? [] : [`(${out} lines of an unknown form are left out)`]), ''].join('\n')
}

/** Returns the known fields of a line of our programs, or a line of a stack trace; undefined for any other. */
export function redactedLine(text: string): string | undefined {
  const fields = fieldsOf(text)
  if (fields !== undefined) return JSON.stringify(kept(fields, logLine))
  return /^\s+at [\w.<>[\] ]+ ?\(?(node:|file:|\/app\/|native)/.test(text) ? scrubbed(text) : undefined
}
