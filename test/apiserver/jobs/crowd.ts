/** A node that is full of pods of a low priority, one with room, and an urgent pod elsewhere that may only go to the full one. */
import { randomBytes } from 'node:crypto'
import { nodes } from '../../../src/kube/resources.ts'
import { deploymentIn } from './deployment.ts'

export type Crowd = Awaited<ReturnType<typeof createCrowd>>

const requests = (cpu: string) => ({
  containers: [{ name: 'app', image: 'app', resources: { requests: { cpu } } }],
})

/** @param low how many pods of a low priority fill the node. */
export async function createCrowd(world: Parameters<typeof deploymentIn>[0], low = 2) {
  const { api } = world
  const id = randomBytes(4).toString('hex')
  const [full, spare] = [`full-${id}`, `spare-${id}`]
  const priority = (name: string, value: number) =>
    api.request('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', {
      body: { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value },
    })
  await priority(`urgent-${id}`, 1_000)
  for (const [name, cpu, labels] of [
    [full, `${low}`, { room: id }],
    [spare, '2', {}],
  ] as const) {
    await api.create(nodes, { metadata: { name, labels } })
    const status = {
      allocatable: { cpu, memory: '8Gi', pods: '20' },
      capacity: { cpu, memory: '8Gi', pods: '20' },
      conditions: [{ type: 'Ready', status: 'True' }],
    }
    await api.patch(nodes, { name }, { type: 'strategic', body: { status } }, { subresource: 'status' })
    // The API server adds a taint to each new node; a controller would take it away.
    await api.patch(nodes, { name }, { type: 'merge', body: { spec: { taints: null } } })
  }
  const batch = await deploymentIn(world, low, requests('1'), { nodeName: full })
  const urgent = await deploymentIn(
    ...([world, 1] as const),
    { ...requests('1'), priorityClassName: `urgent-${id}`, nodeSelector: { room: id } },
    { nodeName: `away-${id}` },
  )
  return {
    ...{ full, spare, batch, urgent },
    async [Symbol.asyncDispose]() {
      for (const name of [full, spare]) await api.delete(nodes, { name })
      await api.request('DELETE', `/apis/scheduling.k8s.io/v1/priorityclasses/urgent-${id}`)
    },
  }
}
