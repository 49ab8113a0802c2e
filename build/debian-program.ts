import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { lockedPackages } from './debian.ts'
import type { SetName } from './package-sets.ts'

/**
 * Returns the command that runs a program of the given set of packages on this machine; the program's own arguments
 * follow `args`. It uses the libraries of its own release, because the machine's may be older.
 */
export async function debianProgram(
  path: string,
  set: SetName,
): Promise<{ readonly command: string; readonly args: readonly string[] }> {
  const { root } = await lockedPackages(set)
  const [libraries] = (await readdir(join(root, 'usr/lib'))).filter(name => name.endsWith('-linux-gnu'))
  const lib = join(root, 'usr/lib', libraries ?? '')
  const [loader] = (await readdir(lib)).filter(name => /^ld-linux.*\.so\./.test(name))
  return {
    command: join(lib, loader ?? ''),
    args: ['--argv0', basename(path), '--library-path', lib, join(root, path)],
  }
}
