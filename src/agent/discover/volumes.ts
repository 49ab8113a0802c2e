import { below, hostPathOf, type Mount } from './mountinfo.ts'

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
 * The emptyDirs that a container mounts, found by where the kubelet keeps them:
 * `.../pods/UID/volumes/kubernetes.io~empty-dir/NAME`. On disk that is the root of the mount within its filesystem; one
 * in memory is a filesystem of its own, which the host's mounts name.
 */
export function emptyDirs(mounts: readonly Mount[], hostMounts: readonly Mount[], podUid: string): Volume[] {
  const marker = `/pods/${podUid}/volumes/kubernetes.io~empty-dir/`
  const found = new Map<string, Volume>()
  for (const mount of mounts) {
    const candidates = [hostPathOf(hostMounts, mount.device, mount.root), mount.root]
    for (const path of candidates) {
      const at = path?.indexOf(marker) ?? -1
      if (path === undefined || at < 0) continue
      const name = path.slice(at + marker.length).split('/')[0]
      if (name === undefined || name === '') continue
      const known = found.get(name)
      if (known !== undefined) {
        if (!mount.readOnly) found.set(name, { ...known, readOnly: false })
        continue
      }
      const end = at + marker.length + name.length
      const directory = path.slice(0, end)
      // The root of a mount is a path within its filesystem; what the host calls it is the other candidate.
      const hostPath = path === mount.root ? hostPathOf(hostMounts, mount.device, directory) : directory
      if (hostPath !== undefined) found.set(name, { name, hostPath, readOnly: mount.readOnly })
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

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
