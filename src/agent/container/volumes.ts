import { below, hostPathOf, type Mount } from './mountinfo.ts'
import { hostNamesOf, joined, type PodsDirectory } from './pods-directory.ts'

/** A writable volume of a container whose content belongs to the memory. */
export interface Volume {
  /** The pod's name for it. */
  readonly name: string
  /** The whole volume on the host, even if the container mounts only a part of it. */
  readonly hostPath: string
  /** True if all the container's mounts of it are read-only. */
  readonly readOnly: boolean
}

/**
 * Returns the emptyDirs that a container mounts. The kubelet keeps them at
 * `PODS/UID/volumes/kubernetes.io~empty-dir/NAME`. One on disk is a directory of that filesystem. One in memory is a
 * filesystem of its own, which the host has mounted at that place.
 *
 * The kernel reports the current path of a mount's directory, and the tenant chooses the names below a volume: it can
 * move a subPath to any path. So the path counts only if it begins with the kubelet's own, on the kubelet's filesystem,
 * and the part below the volume is ignored.
 */
export function emptyDirs(
  mounts: readonly Mount[],
  hostMounts: readonly Mount[],
  pods: PodsDirectory,
  podUid: string,
): Volume[] {
  const rest = `${podUid}/volumes/kubernetes.io~empty-dir`
  const onDisk = joined(pods.root, rest)
  const inMemory = new Map<string, string>()
  for (const place of hostNamesOf(hostMounts, pods))
    for (const { device, mountPoint } of hostMounts) {
      const name = below(joined(place, rest), mountPoint)
      // Ignores deeper mounts: they are inside a volume, where the tenant or its server chooses the names.
      if (name && !name.includes('/') && !inMemory.has(device)) inMemory.set(device, mountPoint)
    }
  const found = new Map<string, Volume>()
  const add = (hostPath: string | undefined, { readOnly }: Mount) => {
    const name = hostPath?.split('/').at(-1)
    if (hostPath === undefined || name === undefined) return
    found.set(name, { name, hostPath, readOnly: readOnly && found.get(name)?.readOnly !== false })
  }
  for (const mount of mounts) {
    const name = mount.device === pods.device ? below(onDisk, mount.root)?.split('/')[0] : undefined
    if (name) add(hostPathOf(hostMounts, pods.device, `${onDisk}/${name}`), mount)
    else add(inMemory.get(mount.device), mount)
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** True if some mounts may be emptyDirs; without the kubelet's directory, the agent cannot tell which. */
export const mayBeEmptyDirs = (mounts: readonly Mount[], hostMounts: readonly Mount[]): boolean =>
  mounts.some(({ device, root }) =>
    [root, hostPathOf(hostMounts, device, root)].some(path => path?.includes('/kubernetes.io~empty-dir/')),
  )

/**
 * Returns the first mount of the root, which is the runtime's. A later one could name any directory of the node as its
 * upper directory.
 */
export const rootMount = (mounts: readonly Mount[]): Mount | undefined =>
  mounts.find(mount => mount.mountPoint === '/')

/**
 * Returns the writable directory of the container's root as a path on the host; undefined if there is none to save. The
 * directory of a read-only root contains only files of the runtime.
 */
export function upperDirectory(mounts: readonly Mount[]): string | undefined {
  const root = rootMount(mounts)
  return root?.type === 'overlay' && !root.readOnly ? root.superOptions.get('upperdir') : undefined
}

/**
 * Returns the paths of other mounts, relative to the container's root: they are not part of its writable layer. Omits
 * paths below another one.
 */
export function mountPoints(mounts: readonly Mount[]): string[] {
  const paths = mounts.flatMap(mount => {
    const path = below('/', mount.mountPoint)
    return path === undefined || path === '' ? [] : [path]
  })
  const all = [...new Set(paths)].sort()
  return all.filter(path => !all.some(other => other !== path && below(other, path) !== undefined))
}
