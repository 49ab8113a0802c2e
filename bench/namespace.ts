import { memoryAllowed } from '../src/api/memory-permission.ts'
import type { Api } from '../src/kube/api.ts'
import { systemClock } from '../src/kube/clock.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { namespaces, serviceAccounts } from '../src/kube/resources.ts'

/**
 * Runs `work` in a namespace of its own, which is empty at the start and deleted at the end, even after a failure.
 * @throws the error of `work`
 */
export async function inNamespace<T>(
  api: Api,
  namespace: string,
  signal: AbortSignal,
  work: (namespace: string) => Promise<T>,
): Promise<T> {
  await remove(api, namespace, signal)
  await api.create(
    namespaces,
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
    { signal },
  )
  try {
    await hasServiceAccount(api, namespace, signal)
    return await work(namespace)
  } finally {
    // Has a time limit of its own, because after Ctrl-C the signal has fired already.
    await remove(api, namespace, AbortSignal.timeout(60_000))
  }
}

const labels = { 'app.kubernetes.io/managed-by': 'understudy-bench', ...memoryAllowed }

/** The API server refuses pods until the namespace has its default service account. */
async function hasServiceAccount(api: Api, namespace: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await api.get(serviceAccounts, { namespace, name: 'default' }, { signal })
      return
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error
    }
    await systemClock.sleep(100, signal)
  }
}

async function remove(api: Api, name: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      const found = await api.get(namespaces, { name }, { signal })
      if (found.metadata.labels?.['app.kubernetes.io/managed-by'] !== 'understudy-bench')
        throw new Error(
          `namespace ${name} exists and is not from a bench: choose another cluster or remove it`,
        )
      if (found.metadata.deletionTimestamp === undefined)
        await api.delete(namespaces, { name }, {}, { signal })
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return
      throw error
    }
    await systemClock.sleep(250, signal)
  }
}
