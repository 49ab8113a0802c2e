import { gateContainerName } from '../../../src/api/gate.ts'
import { labels } from '../../../src/api/labels.ts'
import type { Pod } from '../../../src/kube/resources.ts'
import type { Stamped } from '../recording.ts'

/** Returns a pod as a watch would show it, with only the fields that the observers read. */
export function podOf(
  name: string,
  kind: string,
  status: object,
  more: { readonly leaving?: boolean; readonly slot?: number } = {},
): Pod {
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '1',
      labels: {
        [labels.type]: kind,
        ...(more.slot === undefined ? {} : { [labels.slot]: String(more.slot) }),
      },
      ...(more.leaving ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { containers: [], initContainers: [{ name: gateContainerName, restartPolicy: 'Always' }] },
    status,
  } as Pod
}

export const heard = (at: number, type: Stamped<Pod>['type'], object: Pod): Stamped<Pod> => ({
  at,
  type,
  object,
})
