/**
 * Memory is saved and brought back by agents that are root on their nodes, so the administrator of a cluster says in
 * which namespaces it may be: by a label of the namespace, which its editors cannot write.
 */
import { prefix } from './labels.ts'

export const memoryPermission = { label: `${prefix}memory`, value: 'allowed' } as const

/** What allows it, for the metadata of a namespace. */
export const memoryAllowed: Readonly<Record<string, string>> = {
  [memoryPermission.label]: memoryPermission.value,
}

/** `labelled`: only namespaces with the label. `all`: every one, for clusters of a single tenant. */
export const memoryNamespaces = ['labelled', 'all'] as const
export type MemoryNamespaces = (typeof memoryNamespaces)[number]

/** What a set is told where memory may not be; the admission policy understudy-memory says the same. */
export const memoryNotAllowed =
  `memory is not allowed in this namespace: have an administrator label it ${memoryPermission.label}=` +
  `${memoryPermission.value}, or remove spec.checkpoint, or set hotBackup.mode to Warm`
