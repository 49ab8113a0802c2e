import { wakeAnnotation } from '../../api/pod-contract.ts'
import type { CandidatePort, PodPort } from '../act/context.ts'
import { patchPod } from '../act/write-pod.ts'
import type { Candidate } from '../decide/snapshot.ts'
import type { GateResult } from './open-gate.ts'

/**
 * Opens the gate of a pod over TCP. If that gets no answer, it goes through the agent of the pod's node, which reads
 * the message from an annotation of the pod. Only gates of sets that keep memory have this second path. @throws as
 * `openGate`, KubeError.
 */
export function askGate(
  context: PodPort & CandidatePort,
  pod: Candidate,
  to: 'primary' | 'hotbackup',
): Promise<GateResult> {
  const { owner, openGate, wakeupTimeoutMs, signal } = context
  const throughNode = async (order: string) => {
    await patchPod(context, pod, () => true, { annotations: { [wakeAnnotation]: order } })
  }
  return openGate({
    ownerUid: owner.uid,
    pod: { namespace: owner.namespace, name: pod.name, uid: pod.uid },
    to,
    timeoutMs: wakeupTimeoutMs,
    signal,
    ...(pod.stage?.understudy ? { throughNode } : {}),
  })
}
