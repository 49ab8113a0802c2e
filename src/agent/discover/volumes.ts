import { below, hostPathOf, type Mount } from './mountinfo.ts'
import { hostNamesOf, joined, type PodsDirectory } from './pods-directory.ts'

/** Writable things of a container besides its layer whose content belongs to its memory. */
export interface Volume {
  /** The pod's name for it. */
  readonly name: string
  /** The whole volume on the host, also where the container mounts a part of it. */
  readonly hostPath: string
  /** Wherever the container has it mounted. */
  readonly readOnly: boolean
}

/**
 * The emptyDirs that a container mounts, found by where the kubelet keeps them: `PODS/UID/volumes/kubernetes.io~empty-dir/NAME`.
 * One on disk is a directory of that filesystem. One in memory is a filesystem of its own, which the host has mounted at
 * that place.
 *
 * The kernel tells where a mount's directory is now, and below a volume its names are the tenant's: a subPath that the tenant
 * moves can have any path. So that path is believed only where it begins with the kubelet's own, on its filesystem, and
 * nothing of it is used that lies below the volume.
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
      // What is mounted deeper is in a volume, where the tenant or its server chooses names.
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

/** Whether there may be emptyDirs among them; without the kubelet's directory nobody knows which. */
export const mayBeEmptyDirs = (mounts: readonly Mount[], hostMounts: readonly Mount[]): boolean =>
  mounts.some(({ device, root }) =>
    [root, hostPathOf(hostMounts, device, root)].some(path => path?.includes('/kubernetes.io~empty-dir/')),
  )

/** The first one there is the runtime's; another over it would name any directory of the node as its writable one. */
export const rootMount = (mounts: readonly Mount[]): Mount | undefined =>
  mounts.find(mount => mount.mountPoint === '/')

/**
 * The writable directory of the container's root, as the host's mounts name it; undefined: there is none to save. With a
 * read-only root there is one in which only the runtime has written.
 */
export function upperDirectory(mounts: readonly Mount[]): string | undefined {
  const root = rootMount(mounts)
  return root?.type === 'overlay' && !root.readOnly ? root.superOptions.get('upperdir') : undefined
}

/**
 * Paths at which something else is mounted, relative to the container's root: not part of its writable layer. Those
 * below another one are left out.
 */
export function mountPoints(mounts: readonly Mount[]): string[] {
  const paths = mounts.flatMap(mount => {
    const path = below('/', mount.mountPoint)
    return path === undefined || path === '' ? [] : [path]
  })
  const all = [...new Set(paths)].sort()
  return all.filter(path => !all.some(other => other !== path && below(other, path) !== undefined))
}
