import { wakeAnnotation } from '../../api/stage.ts'
import type { PodView } from '../snapshot.ts'
import type { ActContext } from './context.ts'
import type { GateResult } from './open-gate.ts'
import { patchPod } from './write-pod.ts'

/**
 * Opens the gate of a pod: over TCP, and where nobody answers there through the agent of its node, which finds the
 * message with the pod. Only gates of sets that keep memory have that second door. @throws as `openGate`, KubeError.
 */
export function askGate(context: ActContext, pod: PodView, to: 'primary' | 'hotbackup'): Promise<GateResult> {
  const { set, openGate, signal } = context
  const throughNode = async (order: string) => {
    context.wrote(await patchPod(context, pod, () => true, { annotations: { [wakeAnnotation]: order } }))
  }
  return openGate({
    setUid: set.uid,
    pod: { namespace: set.namespace, name: pod.name, uid: pod.uid },
    to,
    timeoutMs: set.wakeupTimeout * 1000,
    signal,
    ...(pod.stage?.understudy ? { throughNode } : {}),
  })
}
