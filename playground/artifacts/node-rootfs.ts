import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { debianPackages } from '../../build/debian.ts'
import { run } from '../exec.ts'
import type { Recipe } from './recipe.ts'

/**
 * Contents of a node's root file system besides our own binaries: a container runtime's lowest layer, network plugins,
 * and the tools that kube-proxy, the kubelet and a person on the node call.
 */
const PACKAGES = [
  'bash',
  'ca-certificates',
  'conntrack',
  'containernetworking-plugins',
  'coreutils',
  'curl',
  'dash',
  'findutils',
  'gawk',
  'grep',
  'hostname',
  'iproute2',
  'iptables',
  'iputils-ping',
  'kmod',
  'mount',
  'nftables',
  'passwd',
  'procps',
  'runc',
  'sed',
  'socat',
  'tcpdump',
  'util-linux',
]

/** Maintainer scripts do not run, so the files that a node needs from them are written here. */
const FILES: Readonly<Record<string, string>> = {
  'etc/passwd':
    'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'etc/hosts': '127.0.0.1 localhost\n',
  'etc/resolv.conf': '',
  'etc/machine-id': '',
}

/** Empty directories that mounts and the components expect. */
const DIRECTORIES = [
  '.old',
  'dev',
  'etc/cni/net.d',
  'opt/understudy',
  'proc',
  'root',
  'run',
  'sys',
  'tmp',
  'var/lib/containerd',
  'var/lib/kubelet',
  'var/log/pods',
]

export const nodeRootfs: Recipe = {
  title: 'node root file system',
  inputs: async () => ({ packages: PACKAGES, files: FILES, directories: DIRECTORIES, recipe: 1 }),
  async build(directory, { signal, detail }) {
    const tree = await debianPackages(PACKAGES, { ...(signal && { signal }), progress: detail })
    // Hard links are safe: a node writes to its overlay, never to these files.
    await run(['cp', '-al', `${tree.root}/.`, directory], { signal })
    for (const path of DIRECTORIES) await mkdir(join(directory, path), { recursive: true })
    for (const [path, text] of Object.entries(FILES)) {
      await rm(join(directory, path), { force: true })
      await writeFile(join(directory, path), text)
    }
  },
}
