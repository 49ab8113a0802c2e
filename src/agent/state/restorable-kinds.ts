/** Kinds of memory that this node has restored at least once. Until then no memory of that kind counts as usable. */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Log } from '../../kube/log.ts'

export interface RestorableKinds {
  readonly kinds: ReadonlySet<string>
  /** @param kind restore hash. */
  add(kind: string): Promise<void>
}

const kindPattern = /^[0-9a-f]{16}$/

/**
 * @param file where a later agent finds the kinds; a reboot deletes it, after which kernel and CRIU may be others.
 * @param programs version of the programs that restore: another version has proven nothing.
 */
export async function loadRestorableKinds(
  file: string,
  programs: string,
  log: Log,
): Promise<RestorableKinds> {
  const kinds = new Set<string>()
  const [first, ...lines] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
  if (first === programs) for (const line of lines) if (kindPattern.test(line)) kinds.add(line)
  return {
    kinds,
    async add(kind) {
      if (kinds.has(kind)) return
      kinds.add(kind)
      try {
        await mkdir(dirname(file), { recursive: true, mode: 0o700 })
        await writeFile(`${file}.tmp`, [programs, ...kinds].join('\n'), { mode: 0o600 })
        await rename(`${file}.tmp`, file)
      } catch (error) {
        // The next agent will prove it again.
        log.warn({ err: error, file }, 'cannot write the list of restored kinds')
      }
    },
  }
}
