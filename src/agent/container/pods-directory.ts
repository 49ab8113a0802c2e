import { below, type Mount } from './mountinfo.ts'

/** The kubelet's directory of pods, usually `/var/lib/kubelet/pods`. */
export interface PodsDirectory {
  /** `major:minor` of its filesystem. */
  readonly device: string
  /** Its path within that filesystem, which may be mounted elsewhere, or in part. */
  readonly root: string
}

const terminationLog = '/dev/termination-log'

/**
 * Finds the directory in the mounts of the agent's container: the kubelet mounts a file of `PODS/UID/containers/NAME/`
 * into each container. Mounts of other containers cannot serve for this, as a tenant chooses the names below its
 * volumes.
 *
 * @param own mounts of the agent's container.
 * @returns undefined if no kubelet has made the container.
 */
export function podsDirectoryIn(own: readonly Mount[]): PodsDirectory | undefined {
  const mount = own.find(({ mountPoint }) => mountPoint === terminationLog)
  const root = /^(.*)\/[^/]+\/containers\/[^/]+\/[^/]+$/.exec(mount?.root ?? '')?.[1]
  if (mount === undefined || root === undefined) return undefined
  return { device: mount.device, root: root === '' ? '/' : root }
}

/** Returns the directory's paths on the host. A filesystem may have several mounts, and each may show it. */
export function hostNamesOf(hostMounts: readonly Mount[], { device, root }: PodsDirectory): string[] {
  return hostMounts.flatMap(mount => {
    const rest = mount.device === device ? below(mount.root, root) : undefined
    return rest === undefined ? [] : [joined(mount.mountPoint, rest)]
  })
}

/** Joins without normalization: the kernel reports no paths that contain `..`. */
export const joined = (directory: string, rest: string): string =>
  rest === '' ? directory : `${directory === '/' ? '' : directory}/${rest}`
