import type { Command } from 'commander'
import { contextNames } from '../../kube/connection.ts'
import { openSession, type Session } from '../session.ts'
import { oneLine } from '../terminal.ts'
import { namesOf } from './names.ts'
import { type Candidate, type CommandLine, commandLine } from './want.ts'

/** A user who presses Tab waits for so long at most, ms. */
const patienceMs = 1_500

/** The last line: after `:0` a shell completes file names, after `:4` it does not. kubectl has the same numbers. */
const fileNames = ':0'
const noFileNames = ':4'

/**
 * Returns the lines by which a shell completes a command line: words with their meaning behind a tab, and last what else the
 * shell may do. It never fails: without a cluster there are only words of this program.
 */
export async function complete(
  root: Command,
  typed: readonly string[],
  base: Pick<Session, 'terminal' | 'version' | 'signal'>,
): Promise<readonly string[]> {
  const line = commandLine(root, typed)
  if (line.want.kind === 'file') return [fileNames]
  const all = line.want.kind === 'words' ? line.want.words : await ofCluster(line, base).catch(() => [])
  const fitting = all.filter(({ word }) => word.startsWith(line.prefix) && isPlain(word))
  return [
    ...fitting.map(({ word, about }) => (about === undefined ? word : `${word}\t${oneLine(about)}`)),
    noFileNames,
  ]
}

/** Shells evaluate what they complete: no word has characters that mean something to them. */
const isPlain = (word: string): boolean => /^[\w.:/@+-]+$/.test(word)

async function ofCluster(
  line: CommandLine,
  base: Pick<Session, 'terminal' | 'version' | 'signal'>,
): Promise<readonly Candidate[]> {
  const { want, options } = line
  if (want.kind !== 'names') return []
  const option = (name: string) => {
    const value = options.get(`--${name}`)
    return value === undefined ? {} : { [name]: value }
  }
  const given = { ...option('kubeconfig'), ...option('context'), ...option('namespace'), ...option('as') }
  if (want.of === 'context') return (await contextNames(given)).map(word => ({ word }))
  const signal = AbortSignal.any([base.signal, AbortSignal.timeout(patienceMs)])
  // A credential plugin may wait for a person, and heeds no signal.
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const session = await Promise.race([openSession(given, { ...base, signal }), late])
  try {
    return await Promise.race([namesOf(session, want.of, line), late])
  } finally {
    await session.api.close()
  }
}
