/** The gates of cold backups, without their transport. */
import { tokenDigest } from '../../../src/backuppodset/wake/token.ts'
import type { Kubelet } from './kubelet.ts'
import type { Machine } from './world.ts'

/** Answers like a gate, and opens it for the right token. */
export function openGate(
  machine: Machine,
  kubelet: Kubelet,
  uid: string,
  containerId: string,
  token: string,
): string {
  const pod = machine.pods.get(uid)
  if (pod === undefined || pod.killed) return 'refused'
  if (pod.gate === undefined) return 'already'
  if (containerId !== '' && pod.gate.id !== containerId) return 'denied'
  if (tokenDigest(token) !== pod.gate.digest) return 'denied'
  pod.gate = undefined
  kubelet.look()
  return 'woken'
}
