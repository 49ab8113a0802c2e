/** The seed of a node: a disk with its identity, the programs that its packages do not have, and the images. */
import { chmod, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { writeNodeCredentials } from '../playground/credentials.ts'
import { run } from '../playground/exec.ts'
import type { ClusterPaths } from '../playground/paths.ts'
import { openAuthority } from '../playground/pki.ts'
import { makeFilesystem } from './root-disk.ts'
import { SEED } from './root-files.ts'
import { type SeedInputs, seedFiles } from './seed-files.ts'

export interface Seed {
  readonly disk: string
  /** Private key for ssh to root of the node. */
  readonly key: string
  /** For ssh: the node's key, by its address. */
  readonly knownHosts: string
  /** Paths of the image archives inside the node. */
  readonly images: readonly string[]
}

export interface SeedOptions extends SeedInputs {
  readonly paths: Pick<ClusterPaths, 'pki'>
  /** Directories of binaries. */
  readonly artifacts: { readonly kube: string; readonly containerd: string }
  /** Archives on this machine. */
  readonly images: readonly string[]
  readonly signal: AbortSignal
}

const seedSize = '1G'

/** Makes a seed in a directory that is accessible to root alone. */
export async function makeSeed(directory: string, options: SeedOptions): Promise<Seed> {
  const { plan, guest, kind, paths, artifacts, images, signal } = options
  const root = join(directory, 'seed')
  const machine = join(root, 'machine')
  await mkdir(machine, { recursive: true })
  for (const [name, text] of Object.entries(seedFiles(options))) {
    await mkdir(dirname(join(machine, name)), { recursive: true })
    await writeFile(join(machine, name), text)
  }
  await writeNodeCredentials({ plan, paths }, await openAuthority(paths.pki, signal), guest, machine)
  const key = join(directory, 'key')
  for (const [path, comment] of [
    [key, 'portability'],
    [join(machine, 'ssh_host_key'), guest.name],
  ] as const)
    await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', comment, '-f', path], { signal })
  await cp(`${key}.pub`, join(machine, 'authorized_keys'))
  const knownHosts = join(directory, 'known_hosts')
  const hostKey = await readFile(join(machine, 'ssh_host_key.pub'), 'utf8')
  await writeFile(knownHosts, `${guest.address} ${hostKey}`)

  await mkdir(join(root, 'kube'))
  await cp(join(artifacts.kube, 'kube'), join(root, 'kube', 'kube'))
  for (const name of ['kubelet', 'kube-proxy']) await symlink('kube', join(root, 'kube', name))
  if (kind.containerd === 'playground')
    await cp(artifacts.containerd, join(root, 'containerd'), { recursive: true })
  await mkdir(join(root, 'images'))
  for (const image of images) await cp(image, join(root, 'images', basename(image)))
  // ssh refuses keys in directories that others could write to, and directories of the cache are closed to others.
  for (const path of [root, machine]) await chmod(path, 0o755)
  const disk = join(directory, 'seed.ext4')
  await makeFilesystem(root, disk, 'seed', seedSize, { signal })
  await rm(root, { recursive: true, force: true })
  return { disk, key, knownHosts, images: images.map(image => `${SEED}/images/${basename(image)}`) }
}
