/** EndsSoon: a pod resumes a memory that has got the signal to end, and so ends, too. */
import type { Thawed } from '../cluster.ts'
import type { Ground } from './ground.ts'

export const endsSoon =
  ({ violate }: Ground): ((thaw: Thawed) => void) =>
  ({ pod, slot, epoch }) => {
    // One that is deleted itself gets the signal after it has resumed.
    if (pod.isTold) return
    if (pod.containers.some(({ app }) => app?.memory.isToEnd === true))
      violate(
        'EndsSoon',
        `${pod.uid} ${epoch}`,
        `${pod.name} resumes a memory of ${slot.name} that is about to end`,
      )
  }
