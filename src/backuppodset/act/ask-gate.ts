import { wakeAnnotation } from '../../api/pod-contract.ts'
import type { PodView } from '../snapshot.ts'
import type { ActContext } from './context.ts'
import type { GateResult } from './open-gate.ts'
import { patchPod } from './write-pod.ts'

/**
 * Opens the gate of a pod over TCP. If that gets no answer, it goes through the agent of the pod's node, which reads
 * the message from an annotation of the pod. Only gates of sets that keep memory have this second path. @throws as
 * `openGate`, KubeError.
 */
export function askGate(context: ActContext, pod: PodView, to: 'primary' | 'hotbackup'): Promise<GateResult> {
  const { set, openGate, signal } = context
  const throughNode = async (order: string) => {
    await patchPod(context, pod, () => true, { annotations: { [wakeAnnotation]: order } })
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
