import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAgentError } from '../../api/agent-errors.ts'
import { descriptors } from '../container/descriptors.ts'
import { refOf } from '../container/process.ts'
import type { TestContainerOptions } from './test-container.ts'

/** `WriteProtect`: by write protection through a userfaultfd. Otherwise the part of it that fails here. */
export type RecordTechnique =
  | { readonly name: 'WriteProtect' }
  | { readonly name: 'None'; readonly why: string }

const tryMs = 10_000

/**
 * Tries the record of writes in a process of the tracker itself: stores, system calls, moved memory. The kernel's version
 * proves nothing, because distributions change both ways.
 */
export async function recordTechnique({
  sentinel,
  fs,
  programs,
  directory,
  signal,
}: Pick<
  TestContainerOptions,
  'sentinel' | 'fs' | 'programs' | 'directory' | 'signal'
>): Promise<RecordTechnique> {
  const log = join(directory, 'record')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  try {
    await sentinel.spawn(
      {
        target: await refOf(fs, fs.host),
        ...{ namespaces: 'keep', rights: 'Track', cgroup: 'stay', deadlineMs: tryMs, log },
        files: [{ fd: descriptors.programs, path: programs, mode: 'd' }],
        arguments: [`/proc/self/fd/${descriptors.programs}/tracker`, 'try'],
      },
      signal,
    )
    const said = (await readFile(log, 'utf8')).trim().slice(-200)
    return said === 'yes'
      ? { name: 'WriteProtect' }
      : { name: 'None', why: said.replace(/^no /, '') || 'no answer' }
  } catch (error) {
    signal.throwIfAborted()
    if (!isAgentError(error)) throw error
    return { name: 'None', why: error.message }
  } finally {
    await rm(log, { force: true })
  }
}
