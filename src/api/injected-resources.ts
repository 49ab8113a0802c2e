/** Requests and limits of each injected container, if it has any. */
export interface InjectedResources {
  readonly cpu: string
  readonly memory: string
}

/**
 * The waker needs less than 1 MiB, but the runtime starts in the memory of the container. runc before 1.2 copies itself into it (11 MiB), and its
 * heap may be in huge pages (5 MiB): with 16 MiB, the kernel of a usual node kills it before the waker runs. CRI-O has a minimum of
 * 12 MiB (`container_min_memory`).
 */
export const injectedResources: InjectedResources = { cpu: '10m', memory: '32Mi' }
