import type { V1Affinity, V1PodAffinityTerm } from '@kubernetes/client-node'
import type { Strategy } from '../../api/backuppodset.ts'
import { labels, type PodKind } from '../../api/labels.ts'
import type { ParsedSet } from '../../api/parse.ts'
import type { Wire } from '../../kube/object.ts'

type Affinity = Wire<V1Affinity>

/**
 * Adds anti-affinity between backups and the primaries that they protect, in both directions. The strategy `spread`
 * also prefers distance from pods of the same kind.
 *
 * @param yields true for a backup that has a reason to be beside primaries: only a required distance counts for it.
 */
export function withAntiAffinity(
  affinity: Affinity | undefined,
  set: Pick<ParsedSet, 'name' | 'antiAffinity'>,
  kind: PodKind,
  strategy: Strategy,
  yields = false,
): Affinity | undefined {
  const backups: readonly PodKind[] = ['hotbackup', 'coldbackup']
  const others = kind === 'primary' ? backups : ['primary' as const]
  const apartFrom = (kinds: readonly PodKind[]): Wire<V1PodAffinityTerm> => ({
    topologyKey: 'kubernetes.io/hostname',
    labelSelector: {
      matchLabels: { [labels.set]: set.name },
      matchExpressions: [{ key: labels.type, operator: 'In', values: kinds }],
    },
  })
  const required = set.antiAffinity === 'Required' ? [apartFrom(others)] : []
  const preferred = [
    ...(set.antiAffinity === 'Preferred' && !yields
      ? [{ weight: 100, podAffinityTerm: apartFrom(others) }]
      : []),
    ...(strategy === 'spread' ? [{ weight: 50, podAffinityTerm: apartFrom([kind]) }] : []),
  ]
  if (required.length + preferred.length === 0) return affinity
  const own = affinity?.podAntiAffinity
  return {
    ...affinity,
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        ...(own?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
        ...required,
      ],
      preferredDuringSchedulingIgnoredDuringExecution: [
        ...(own?.preferredDuringSchedulingIgnoredDuringExecution ?? []),
        ...preferred,
      ],
    },
  }
}
