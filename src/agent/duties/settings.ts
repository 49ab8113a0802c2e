/** Settings of a pod by its own template, if the pod has them: the set's template may have changed since. */
import type { App, MemorySettings, PodView } from './snapshot.ts'

/** The containers whose memory is kept, with the probes of their template. */
export const containersOf = ({ apps }: PodView, settings: MemorySettings | undefined): readonly App[] =>
  apps ??
  (settings?.template.spec?.containers ?? []).filter(({ name }) => settings?.containers.includes(name))

/** Hash of the memory that the pod can be given, and that its own memory has. */
export const restoreHashOf = (pod: PodView, settings: MemorySettings): string =>
  pod.restoreHash ?? settings.restoreHash
