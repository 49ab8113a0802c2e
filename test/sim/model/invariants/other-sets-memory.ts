/** OtherSetsMemory: a pod of a set resumes with the memory of a set that was deleted. */
import { pods } from '../../../../src/kube/resources.ts'
import { type Ground, setOf } from './ground.ts'
import { running } from './running.ts'

export function otherSetsMemory({ cluster, violate }: Ground): () => void {
  const setOfGenesis = new Map<string, string>()
  return () => {
    if (setOf(cluster) === undefined) return
    for (const { pod, app } of running(cluster)) {
      const owner = cluster.server.list(pods).find(({ metadata }) => metadata.uid === pod.uid)?.metadata
        .ownerReferences?.[0]?.uid
      const born = setOfGenesis.get(app.memory.genesis)
      if (owner === undefined) continue
      if (born === undefined) setOfGenesis.set(app.memory.genesis, owner)
      else if (born !== owner)
        violate(
          'OtherSetsMemory',
          app.memory.genesis,
          `${pod.name} goes on with the memory of a set that was deleted`,
        )
    }
  }
}
