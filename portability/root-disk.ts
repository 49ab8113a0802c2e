/** The disk of a kind of node: a Debian release with its own kernel, made once and then kept in the cache. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { cachedDirectory, cacheRoot, exists, keyOf } from '../build/cache.ts'
import { type DebianArchives, debianArchives } from '../build/sources.ts'
import { run } from '../playground/exec.ts'
import { withLock } from '../playground/lock.ts'
import type { Progress } from '../src/terminal/progress.ts'
import { type NodeKind, packages } from './kinds.ts'
import { disabledUnits, enabledUnits, rootFiles, SEED } from './root-files.ts'

export interface RootDisk {
  /** An ext4 file system with the label `root`. Nothing may write to it. */
  readonly disk: string
  readonly kernel: string
  readonly initrd: string
}

const diskSize = '8G'
const recipe = 1

/**
 * Returns the disk of a release, and makes it if the cache does not have it: about two minutes. It has the package
 * versions of that day; delete `portability/` in the cache for newer ones.
 */
export async function ensureRootDisk(
  { suite }: Pick<NodeKind, 'suite'>,
  { progress, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
): Promise<RootDisk> {
  const key = keyOf({ suite, packages, rootFiles, enabledUnits, disabledUnits, diskSize, recipe })
  const target = join(cacheRoot(), 'portability', `${suite}-${key}`)
  if (!(await exists(target)))
    await progress.step(`root file system of ${suite}`, step =>
      withLock(
        `${target}.lock`,
        async () => {
          await sweep(target)
          await cachedDirectory(target, scratch =>
            build(scratch, suite, `${target}.log`, step.detail, signal),
          )
        },
        { signal, onWait: pid => step.detail(`waiting for process ${pid}, which makes it`) },
      ),
    )
  return {
    disk: join(target, 'disk.ext4'),
    kernel: join(target, 'vmlinuz'),
    initrd: join(target, 'initrd.img'),
  }
}

/** Removes what killed builds have left. The caller holds the lock. */
async function sweep(target: string): Promise<void> {
  for (const name of await readdir(dirname(target)))
    if (name.startsWith(`${basename(target)}.work-`))
      await rm(join(dirname(target), name), { recursive: true, force: true })
}

async function build(
  scratch: string,
  suite: NodeKind['suite'],
  logFile: string,
  detail: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const root = join(scratch, 'root')
  const options = { signal, logFile }
  detail('packages')
  await run(
    [
      ...['mmdebstrap', '--mode=root', '--variant=minbase', '--format=directory'],
      `--include=${packages.join(',')}`,
      ...[suite, root],
      ...sources(await debianArchives(), suite),
    ],
    options,
  )
  for (const [path, text] of Object.entries(rootFiles)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  await mkdir(join(root, SEED), { recursive: true })
  // The seed has the key of the host.
  for (const name of await readdir(join(root, 'etc/ssh')))
    if (name.startsWith('ssh_host_')) await rm(join(root, 'etc/ssh', name))
  await run(['systemctl', `--root=${root}`, 'enable', ...enabledUnits], options)
  await run(['systemctl', `--root=${root}`, 'mask', ...disabledUnits], options)
  for (const [prefix, name] of [
    ['vmlinuz-', 'vmlinuz'],
    ['initrd.img-', 'initrd.img'],
  ] as const) {
    const found = (await readdir(join(root, 'boot'))).find(file => file.startsWith(prefix))
    if (found === undefined) throw new Error(`the packages of ${suite} have no ${prefix}*: ${logFile}`)
    await run(['cp', join(root, 'boot', found), join(scratch, name)], options)
  }
  detail('disk')
  await makeFilesystem(root, join(scratch, 'disk.ext4'), 'root', diskSize, options)
  await rm(root, { recursive: true, force: true })
}

/** Makes an ext4 file system in a sparse file, with the contents of a directory. */
export async function makeFilesystem(
  directory: string,
  disk: string,
  label: string,
  size: string,
  options: { readonly signal: AbortSignal; readonly logFile?: string },
): Promise<void> {
  await run(
    [
      ...['mke2fs', '-q', '-F', '-t', 'ext4', '-L', label],
      // The kernel would zero the tables after the first mount, through an emulated disk.
      ...['-E', 'lazy_itable_init=1,lazy_journal_init=1', '-d', directory, disk, size],
    ],
    options,
  )
}

/** Lines for apt of any release in the archives that this machine uses. */
export function sources({ main, security }: DebianArchives, suite: string): string[] {
  const line = (uri: string, name: string, signedBy: string): string =>
    `deb [signed-by=${signedBy}] ${uri} ${name} main`
  return [
    line(main.uri, suite, main.signedBy),
    line(main.uri, `${suite}-updates`, main.signedBy),
    ...(security ? [line(security.uri, `${suite}-security`, security.signedBy)] : []),
  ]
}
