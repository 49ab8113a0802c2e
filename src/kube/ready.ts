import type { Node, Pod } from './resources.ts'

/** True if the condition `Ready` of a pod or node is True. An object without the condition is not ready. */
export const isReady = ({ status }: Pick<Pod | Node, 'status'>): boolean =>
  status?.conditions?.some(condition => condition.type === 'Ready' && condition.status === 'True') === true
