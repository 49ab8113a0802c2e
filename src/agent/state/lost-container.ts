import type { PodView } from '../observe/snapshot.ts'
import { shortId } from './watch-name.ts'

/**
 * Returns a container that runs under another id than the watched one, or than the id that the pod's condition names
 * as on stage.
 */
export function lostContainer(
  pod: PodView,
  lives: ReadonlyMap<string, string> | undefined,
): string | undefined {
  const serves = pod.understudy && pod.serving?.status === 'True' ? pod.serving.record.containers : undefined
  return pod.containers.find(({ name, containerId }) => {
    // A container that is about to be replaced has no id for a moment, or still the old one: both say nothing.
    if (containerId === undefined) return false
    const life = lives?.get(name)
    if (life !== undefined && life !== shortId(containerId)) return true
    return serves !== undefined && serves[name] !== containerId
  })?.name
}
