import type { ProbeTarget } from '../../probe/probe.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { TaskContext } from './task-context.ts'

export type ProbeTargetContext = Pick<TaskContext, 'understudies' | 'runCommand'>

/**
 * Returns the target of a pod's probes. Only an understudy, where the agent stands in for the kubelet, can run
 * commands.
 */
export function targetOf({ understudies, runCommand }: ProbeTargetContext, pod: PodView): ProbeTarget {
  const address = pod.ip ?? ''
  if (!pod.understudy) return { address }
  return {
    address,
    run: async (name, command, signal) => {
      const { located } = await understudies.enter(pod, signal)
      const container = located.containers.find(it => it.name === name)
      if (container === undefined) return { outcome: 'failure', message: `no container ${name}` }
      return runCommand(container, command, signal)
    },
  }
}
