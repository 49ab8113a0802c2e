/**
 * Services that are reachable from outside of the cluster open ports on nodes and cost money. So the cluster's administrator decides in which
 * namespaces sets may have them, by a label of the namespace, as for memory.
 */
import { prefix } from './labels.ts'

/** The label that allows them, for the metadata of a namespace. The admission policy understudy-operator-objects asks for it. */
export const externalServicesAllowed: Readonly<Record<string, string>> = {
  [`${prefix}external-services`]: 'allowed',
}
