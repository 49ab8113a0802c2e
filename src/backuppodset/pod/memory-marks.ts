import { labels, type PodKind } from '../../api/labels.ts'
import type { ParsedMemory } from '../../api/memory.ts'
import type { ParsedSet } from '../../api/parse.ts'
import {
  memoryAnnotation,
  memoryKept,
  probeKinds,
  probesAnnotation,
  savedAnnotation,
} from '../../api/pod-contract.ts'
import { restoreHash } from '../../checkpoint/restore-hash.ts'

/**
 * Returns labels and annotations with which a pod of a set with memory describes its template. Agents use these and not
 * the set, whose template may have changed since: they would run its new probes against an old app.
 */
export function memoryMarks(
  template: ParsedSet['template'],
  { containers }: Pick<ParsedMemory, 'containers'>,
  kind: PodKind,
): { readonly labels: Record<string, string>; readonly annotations: Record<string, string> } {
  const probes = template.spec.containers.flatMap(container => {
    const own = probeKinds.flatMap(probe => (container[probe] ? [[probe, container[probe]]] : []))
    return own.length === 0 ? [] : [[container.name, Object.fromEntries(own)]]
  })
  return {
    labels: { [labels.restoreHash]: restoreHash(template, containers) },
    annotations: {
      [memoryAnnotation]: memoryKept,
      [savedAnnotation]: containers.join(','),
      ...(kind === 'primary' || probes.length === 0
        ? {}
        : { [probesAnnotation]: JSON.stringify(Object.fromEntries(probes)) }),
    },
  }
}
