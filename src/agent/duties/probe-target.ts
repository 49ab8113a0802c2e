import type { ProbeTarget } from '../probe/probe.ts'
import type { PodView } from './snapshot.ts'
import type { Work } from './work.ts'

/** Where the probes of a pod go. Commands are run where an agent stands in for the kubelet, and only there. */
export function targetOf({ understudies, runCommand }: Work, pod: PodView): ProbeTarget {
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
