import { isAtGate } from '../../src/api/gate.ts'
import { labels, type PodKind } from '../../src/api/labels.ts'
import type { Pod } from '../../src/kube/resources.ts'

export interface Counts {
  readonly primary: number
  readonly hotbackup: number
  readonly coldbackup: number
}

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

export const isLeaving = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined

export const kindOf = (pod: Pod): string | undefined => pod.metadata.labels?.[labels.type]

/** @param gate name of an init container that ends when its gate opens; undefined: ours */
const isGated = (pod: Pod, gate: string | undefined): boolean =>
  gate === undefined
    ? isAtGate(pod)
    : (pod.status?.initContainerStatuses?.some(
        ({ name, state }) => name === gate && state?.running !== undefined,
      ) ?? false)

/**
 * True if a set's pods are as wanted: the three numbers are exact, primaries and hot backups Ready, cold backups at
 * their gate (`Init:0/1`). Ignores pods that are being deleted.
 */
export function isInPlace(pods: Iterable<Pod>, wanted: Counts, gate?: string): boolean {
  const found: Record<PodKind, number> = { primary: 0, hotbackup: 0, coldbackup: 0 }
  for (const pod of pods) {
    if (isLeaving(pod)) continue
    const kind = kindOf(pod)
    switch (kind) {
      case 'primary':
      case 'hotbackup':
        if (!isReady(pod)) return false
        break
      case 'coldbackup':
        if (!isGated(pod, gate)) return false
        break
      default:
        return false
    }
    found[kind] += 1
  }
  return (
    found.primary === wanted.primary &&
    found.hotbackup === wanted.hotbackup &&
    found.coldbackup === wanted.coldbackup
  )
}

/** True if exactly `count` pods exist, all Ready. Ignores pods that are being deleted. */
export function allReady(pods: Iterable<Pod>, count: number): boolean {
  const live = [...pods].filter(pod => !isLeaving(pod))
  return live.length === count && live.every(isReady)
}
