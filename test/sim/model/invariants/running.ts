import type { Cluster, ModelNode } from '../cluster.ts'
import type { App, PodOnNode } from '../world.ts'

interface Running {
  readonly node: ModelNode
  readonly pod: PodOnNode
  readonly container: string
  readonly app: App
}

/** Returns the apps that run on machines that are up. */
export function running({ nodes }: Cluster): readonly Running[] {
  const found: Running[] = []
  for (const node of nodes) {
    if (!node.machine.up) continue
    for (const pod of node.machine.pods.values())
      for (const { name, up, app } of pod.containers)
        if (up && app?.runsSince !== undefined) found.push({ node, pod, container: name, app })
  }
  return found
}
