/** A resource of which each node has few, whatever its size: tests fill nodes with it. */
import type { Api } from '../../../src/kube/api.ts'
import { nodes } from '../../../src/kube/resources.ts'

const berth = 'understudy.invalid/berth'

/** Gives a node that many; `null` takes the resource away. */
export async function giveBerths(api: Api, name: string, count: number | null): Promise<void> {
  const amount = { [berth]: count === null ? null : `${count}` }
  const body = { status: { capacity: amount, allocatable: amount } }
  await api.patch(nodes, { name }, { type: 'merge', body }, { subresource: 'status' })
}

/** Resources of a container that needs one. */
export const oneBerth = { requests: { [berth]: '1' }, limits: { [berth]: '1' } }

/** The pod may only run on these nodes, or on any other one. */
export const nodeAffinity = (operator: 'In' | 'NotIn', ...names: string[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'kubernetes.io/hostname', operator, values: names }] },
        ],
      },
    },
  },
})
