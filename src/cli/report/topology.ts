/** Labels of nodes by which Kubernetes and clouds describe them. */
export const clusterDomainLabels = [
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'node.kubernetes.io/instance-type',
] as const
