import { below, type Mount } from './mountinfo.ts'

/** One line of /proc/PID/cgroup. */
export interface Membership {
  /** Controllers of a v1 hierarchy, or its name; empty for v2. */
  readonly controllers: readonly string[]
  readonly name: string | undefined
  readonly path: string
}

export function parseCgroup(text: string): Membership[] {
  return text.split('\n').flatMap(line => {
    const match = /^\d+:([^:]*):(\/.*)$/.exec(line)
    if (match === null) return []
    const words = (match[1] ?? '').split(',').filter(word => word !== '')
    const name = words.find(word => word.startsWith('name='))?.slice('name='.length)
    return [{ controllers: words.filter(word => !word.includes('=')), name, path: match[2] ?? '/' }]
  })
}

/**
 * Returns the path of the container's cgroup if `path` is that cgroup or below it, in the cgroup of this pod. Runtimes
 * and drivers name the directory after the id: `podUID/ID` (cgroupfs), `...-podUID.slice/cri-containerd-ID.scope`
 * (systemd, where - becomes _ in the UID), `crio-ID.scope`, `docker-ID.scope`.
 */
export function containerPart(path: string, podUid: string, containerId: string): string | undefined {
  const parts = path.split('/')
  const at = parts.findIndex(part => namesContainer(part, containerId))
  if (at < 0 || !parts.slice(0, at).some(part => namesPod(part, podUid))) return undefined
  return parts.slice(0, at + 1).join('/')
}

/** Returns the pod's cgroup above that of a container; undefined if there is none. */
export function podDirectory(directory: string, podUid: string): string | undefined {
  const parts = directory.split('/')
  // The first: a container may make directories of any name below its own.
  const at = parts.findIndex(part => namesPod(part, podUid))
  return at < 0 ? undefined : parts.slice(0, at + 1).join('/')
}

const namesPod = (part: string, uid: string): boolean =>
  part.includes(`pod${uid}`) || part.includes(`pod${uid.replaceAll('-', '_')}`)

function namesContainer(part: string, id: string): boolean {
  if (part === id) return true
  if (!part.endsWith(`-${id}.scope`)) return false
  const runtime = part.slice(0, -`-${id}.scope`.length)
  // CRI-O's own process for the container has a cgroup beside it, and must not be stopped.
  return /^[a-z-]+$/.test(runtime) && !runtime.endsWith('conmon')
}

/** Returns the id in `containerd://ID`. */
export function bareContainerId(containerId: string): string {
  const at = containerId.indexOf('://')
  return at < 0 ? containerId : containerId.slice(at + '://'.length)
}

/**
 * Returns the directory of a membership, relative to /sys/fs/cgroup of the process with these mounts; undefined if its
 * hierarchy is not mounted there. If the mount shows only a part of the hierarchy, the root of that part is removed.
 */
export function cgroupDirectory(
  mounts: readonly Mount[],
  membership: Membership,
  path = membership.path,
): string | undefined {
  const { controllers, name } = membership
  const shows = (mount: Mount) => {
    if (controllers.length === 0 && name === undefined) return mount.type === 'cgroup2'
    if (mount.type !== 'cgroup') return false
    return name === undefined
      ? controllers.some(controller => mount.superOptions.has(controller))
      : mount.superOptions.get('name') === name
  }
  for (const mount of mounts.filter(shows)) {
    const base = below('/sys/fs/cgroup', mount.mountPoint)
    const rest = below(mount.root, path)
    if (base !== undefined && rest !== undefined) return [base, rest].filter(part => part !== '').join('/')
  }
  return undefined
}
