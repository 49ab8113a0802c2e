import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from '../src/kube/api.ts'
import { isKubeError } from '../src/kube/errors.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { Resource } from '../src/kube/resources.ts'

const pauseMs = 100

interface Change<T> {
  readonly isGone: boolean
  readonly object: T
}

interface Followed<T extends KubeObject> {
  readonly resource: Resource<T>
  readonly namespace: string
  readonly labelSelector?: string
}

/**
 * Tells of every object and of every change until the signal fires. Restarts of the API server lose no change: the
 * next watch begins with the version at which the last one ended.
 * @returns resolves when `tell` has been called for the objects that exist
 */
export async function follow<T extends KubeObject>(
  api: Api,
  { resource, ...query }: Followed<T>,
  tell: (change: Change<T>) => void,
  signal: AbortSignal,
): Promise<void> {
  const list = async () => {
    const { items, metadata } = await api.list(resource, query, { signal })
    for (const object of items) tell({ isGone: false, object })
    return metadata.resourceVersion
  }
  let resourceVersion = await list()
  const run = async () => {
    for (;;) {
      try {
        for await (const event of api.watch(resource, { ...query, resourceVersion }, { signal })) {
          if (event.type === 'BOOKMARK') {
            resourceVersion = event.resourceVersion
            continue
          }
          resourceVersion = event.object.metadata.resourceVersion
          tell({ isGone: event.type === 'DELETED', object: event.object })
        }
      } catch (error) {
        if (signal.aborted) return
        if (isKubeError(error, 'Gone')) resourceVersion = await list().catch(() => resourceVersion)
      }
      // The server is away, or has ended the watch.
      await sleep(pauseMs)
      if (signal.aborted) return
    }
  }
  void run()
}
