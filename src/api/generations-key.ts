/** The agents' half of the keys for generations on disks: one Secret that the operator creates and agents read. */
export const generationsKey = {
  secret: 'understudy-generations-key',
  /** Key of the field in the Secret. */
  field: 'key',
  /** Bytes. */
  length: 32,
  /** Default namespace of the agents. */
  namespace: 'understudy-agents',
} as const
