import { legacyContainers, legacyMemory } from '../../api/legacy-serving.ts'
import type { BroughtBack, ServingRecord } from '../../api/pod-contract.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { PodCondition } from '../report/conditions.ts'

/** Returns the message and the facts of the condition `serving` of a pod on stage. */
export function onStageOf(
  pod: PodView,
  epoch: number,
  memory?: BroughtBack,
): Pick<PodCondition, 'message'> & { readonly record: ServingRecord } {
  const containers = Object.fromEntries(
    pod.containers.map(({ name, containerId = '' }) => [name, containerId]),
  )
  return {
    message: `epoch ${epoch}: ${legacyContainers(containers)}${memory ? legacyMemory(memory) : ''}`,
    record: { containers, ...(memory && { memory }) },
  }
}
