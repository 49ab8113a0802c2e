import { below, type Mount } from './mountinfo.ts'

/** Where the kubelet keeps what belongs to pods, mostly `/var/lib/kubelet/pods`. */
export interface PodsDirectory {
  /** `major:minor` of its filesystem. */
  readonly device: string
  /** Its path within that filesystem, which may be mounted elsewhere, or in part. */
  readonly root: string
}

const terminationLog = '/dev/termination-log'

/**
 * The kubelet mounts a file of `PODS/UID/containers/NAME/` into each container, so an agent finds the directory in its own
 * mounts. Those of other containers do not say it: a tenant chooses the names below its volumes.
 *
 * @param own mounts of the agent's container.
 * @returns undefined where no kubelet has made the container.
 */
export function podsDirectoryIn(own: readonly Mount[]): PodsDirectory | undefined {
  const mount = own.find(({ mountPoint }) => mountPoint === terminationLog)
  const root = /^(.*)\/[^/]+\/containers\/[^/]+\/[^/]+$/.exec(mount?.root ?? '')?.[1]
  if (mount === undefined || root === undefined) return undefined
  return { device: mount.device, root: root === '' ? '/' : root }
}

/** What the host calls that directory: of several mounts of one filesystem each may show it. */
export function hostNamesOf(hostMounts: readonly Mount[], { device, root }: PodsDirectory): string[] {
  return hostMounts.flatMap(mount => {
    const rest = mount.device === device ? below(mount.root, root) : undefined
    return rest === undefined ? [] : [joined(mount.mountPoint, rest)]
  })
}

/** Neither is looked at as a path that may lead upwards: the kernel tells none that does. */
export const joined = (directory: string, rest: string): string =>
  rest === '' ? directory : `${directory === '/' ? '' : directory}/${rest}`
