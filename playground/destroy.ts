import { readdir, rm } from 'node:fs/promises'
import { run, runToEnd } from './exec.ts'
import { holdingsOf } from './leftovers.ts'
import { powerOff } from './machine.ts'
import { removeHostLinks } from './network.ts'
import { clusterPaths } from './paths.ts'
import { labelPrefix } from './plan.ts'
import { readState } from './state.ts'

/**
 * Removes every part of a cluster, whatever its state: the recorded parts and those that only the kernel knows. The
 * caller holds the cluster's lock. Not interruptible, so that nothing is ever left.
 */
export async function destroy(
  cluster: string,
  options: { root?: string | undefined; keepLogs?: boolean } = {},
): Promise<void> {
  const paths = clusterPaths(cluster, options.root)
  const state = await readState(cluster, options.root)
  const before = await holdingsOf(cluster, options.root)
  await powerOff(labelPrefix(cluster), Object.values(state?.machines ?? {}), new Set(before.processes))
  await removeHostLinks(cluster)
  for (const namespace of before.namespaces) await run(['ip', 'netns', 'del', namespace])
  // Machines mount in namespaces of their own, so only mounts made by hand can be here.
  const { mounts } = await holdingsOf(cluster, options.root)
  for (const mount of mounts) await run(['umount', '--lazy', mount])
  await removeEmptyNamespaceDirectory()
  if (options.keepLogs === true) {
    for (const name of await readdir(paths.root).catch(ignoreMissing)) {
      if (name !== 'logs') await rm(`${paths.root}/${name}`, { recursive: true, force: true })
    }
  } else {
    await rm(paths.root, { recursive: true, force: true })
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENOENT') return []
  throw error
}

/**
 * Removes /run/netns, which `ip netns add` turns into a mount point, if it is empty. A plain umount (not a lazy one)
 * fails if another process is adding a namespace at this moment.
 */
async function removeEmptyNamespaceDirectory(): Promise<void> {
  const names = await readdir('/run/netns').catch(ignoreMissing)
  if (names.length === 0) await runToEnd(['umount', '/run/netns'])
}
