/** Requests and limits of each injected container, if it has any. */
export interface InjectedResources {
  readonly cpu: string
  readonly memory: string
}

/**
 * Some runtimes start no container with less than 12 MiB (CRI-O's `container_min_memory`); the waker needs less than 1
 * MiB.
 */
export const injectedResources: InjectedResources = { cpu: '10m', memory: '16Mi' }
