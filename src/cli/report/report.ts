import { resolve } from 'node:path'
import { messageOf } from '../../kube/errors.ts'
import { examine, ownSchemas } from '../doctor/doctor.ts'
import { type Places, readInstallation } from '../doctor/installation.ts'
import { CliError } from '../failure.ts'
import { answer } from '../output/answer.ts'
import { bytes } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { logFiles } from './log-files.ts'
import { readObjects } from './objects.ts'
import { kept, scrubbed } from './redact.ts'
import { type TarFile, writeTar } from './tar.ts'

export interface ReportOptions extends Places {
  /** Path of the archive. */
  readonly file?: string
  /** Seconds of the logs. */
  readonly since: number
}

/**
 * Writes a support bundle: objects of Understudy, what the operator and the agents have logged, events, facts about nodes, and the
 * findings of `doctor`. It has no memory, state, Secret, value of a variable, argument of a container, or annotation of
 * users: see `shapes.ts` for the fields that it has.
 *
 * @throws CliError if the file exists; KubeError when nothing can be read.
 */
export async function report(session: Session, options: ReportOptions): Promise<void> {
  const { clock, progress, version } = session
  const now = new Date(clock.now())
  const file = options.file ?? `understudy-report-${now.toISOString().replace(/[-:]|\.\d+/g, '')}.tar.gz`
  const { files, unread } = await collect(session, options)
  const about = { time: now.toISOString(), client: version, since: options.since, unread }
  const all = [{ path: 'README.txt', text: readme }, json('report.json', about), ...files].map(each => ({
    ...each,
    path: `understudy-report/${each.path}`,
  }))
  await progress
    .step(`write ${file}`, () => writeTar(file, all, now))
    .catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      throw new CliError(`${file} exists already`, { advice: 'choose another name with --file' })
    })
  const size = all.reduce((sum, { text }) => sum + text.length, 0)
  answer(session, 'SupportBundle', { file: resolve(file), files: all.length, unread }, () =>
    [
      `${file}: ${all.length} files, ${bytes(size)} before compression`,
      ...unread.slice(0, mostUnread).map(each => `  not in it: ${each}`),
      ...(unread.length > mostUnread ? [`  and ${unread.length - mostUnread} other parts`] : []),
      '  → read it before you send it: it has the names of namespaces, pods, nodes and images',
    ].join('\n'),
  )
}

const mostUnread = 10

/** Returns the files of the bundle, and the parts that could not be read. @throws KubeError. */
export async function collect(
  session: Session,
  options: Pick<ReportOptions, 'since' | keyof Places>,
): Promise<{ readonly files: readonly TarFile[]; readonly unread: readonly string[] }> {
  const { progress } = session
  const schemas = await ownSchemas()
  const installation = await progress.wait('examine the installation', () =>
    readInstallation(session, options),
  )
  const findings = examine(installation, options, schemas)
  const unread: string[] = []
  const fail = (what: string) => (error: unknown) => {
    session.signal.throwIfAborted()
    unread.push(scrubbed(`${what}: ${messageOf(error)}`))
    return undefined
  }
  const objects = await progress.step('read objects and events', step =>
    readObjects(session, options, schemas, { fail, of: step.of }),
  )
  const logs = await progress.step('read logs', step => logFiles(session, options, { fail, of: step.of }))
  const shape = [{ area: true, about: true, verdict: true, message: true, cure: true }] as const
  return {
    files: [
      json('doctor.json', { kubernetes: installation.kubernetes, findings: kept(findings, shape) }),
      ...objects.map(({ name, items }) => json(`${name}.json`, { count: items.length, items })),
      ...logs,
    ],
    unread,
  }
}

const json = (path: string, value: object): TarFile => ({
  path,
  text: `${JSON.stringify(value, undefined, 1)}\n`,
})

const readme = `A support bundle of Understudy, written by "kubectl understudy report".

report.json    when and by which version it was written, and the parts that could not be read
doctor.json    findings about the installation
objects/       objects of Understudy, pods of sets, nodes: only fields that are known to have no data of users
events.json    events about them; with their text only where Understudy has written it
logs/          lines of the operator and of the agents: only known fields

It has no memory or state of pods, no Secrets, no values of environment variables, no arguments of containers, and no labels
or annotations of users. Texts lose what looks like a credential. It has the names of namespaces, sets, pods, nodes and images.
`
