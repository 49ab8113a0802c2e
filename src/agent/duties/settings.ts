/** Of a pod's own template where it says so: that of its set may be another one by now. */
import type { App, MemorySettings, PodView } from './snapshot.ts'

/** The containers whose memory is kept, with the probes of their template. */
export const containersOf = ({ apps }: PodView, settings: MemorySettings | undefined): readonly App[] =>
  apps ??
  (settings?.template.spec?.containers ?? []).filter(({ name }) => settings?.containers.includes(name))

/** What memory the pod can be given, and what its own could be given to. */
export const restoreHashOf = (pod: PodView, settings: MemorySettings): string =>
  pod.restoreHash ?? settings.restoreHash
