/** The agents' half of all keys of generations on disks: one Secret, made by the operator, read by agents. */
export const generationsKey = {
  secret: 'understudy-generations-key',
  /** Under which the Secret has it. */
  field: 'key',
  /** Bytes. */
  length: 32,
  /** Where agents run unless told otherwise. */
  namespace: 'understudy-agents',
} as const
