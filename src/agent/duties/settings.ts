import type { MemorySettings } from './snapshot.ts'

/** The template's containers whose memory is kept. */
export const containersOf = ({ template, containers }: MemorySettings) =>
  (template.spec?.containers ?? []).filter(({ name }) => containers.includes(name))
