/**
 * Agents that save and restore memory are root on their nodes. So the cluster's administrator decides in which
 * namespaces this is allowed, by a label of the namespace, which the namespace's editors cannot write.
 */
import { prefix } from './labels.ts'

export const memoryPermission = { label: `${prefix}memory`, value: 'allowed' } as const

/** The label that allows memory, for the metadata of a namespace. */
export const memoryAllowed: Readonly<Record<string, string>> = {
  [memoryPermission.label]: memoryPermission.value,
}

/** `labelled`: only namespaces with the label. `all`: every namespace, for single-tenant clusters. */
export const memoryNamespaces = ['labelled', 'all'] as const
export type MemoryNamespaces = (typeof memoryNamespaces)[number]

/**
 * Message in the status of a set where memory is not allowed; equal to that of the admission policy understudy-memory.
 */
export const memoryNotAllowed =
  `memory is not allowed in this namespace: have an administrator label it ${memoryPermission.label}=` +
  `${memoryPermission.value}, or remove spec.checkpoint, or set hotBackup.mode to Warm`
