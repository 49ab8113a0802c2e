import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { debianPackages } from './debian.ts'

/**
 * What runs a program of the given packages on this machine, its arguments to follow: with the libraries of its own
 * release, because the machine's may be older.
 */
export async function debianProgram(
  path: string,
  packages: readonly string[],
): Promise<{ readonly command: string; readonly args: readonly string[] }> {
  const { root } = await debianPackages(packages)
  const [libraries] = (await readdir(join(root, 'usr/lib'))).filter(name => name.endsWith('-linux-gnu'))
  const lib = join(root, 'usr/lib', libraries ?? '')
  const [loader] = (await readdir(lib)).filter(name => /^ld-linux.*\.so\./.test(name))
  return {
    command: join(lib, loader ?? ''),
    args: ['--argv0', basename(path), '--library-path', lib, join(root, path)],
  }
}
