/**
 * The word of an administrator, or of a remediation such as that of Medik8s, that nothing runs on a node any more:
 * https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-out-of-service
 */
export const outOfService = 'node.kubernetes.io/out-of-service'

export interface Taint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

export const isOutOfService = (taints: readonly Taint[] | undefined): boolean =>
  taints?.some(({ key }) => key === outOfService) === true
