/** Labels and annotations of our pods, and the kinds that the label `type` names. One table. */

export const podKinds = ['primary', 'hotbackup', 'coldbackup'] as const
export type PodKind = (typeof podKinds)[number]

export const isPodKind = (value: string | undefined): value is PodKind =>
  podKinds.some(kind => kind === value)

/** Everything under this prefix is ours; templates may not use it. */
export const prefix = 'backup.example.com/'

export const labels = {
  /** The kind of pod. Services select it, so it keeps the short name of the paper. */
  type: 'type',
  /** Name of the set. */
  set: 'backup.example.com/backuppodset',
  /** Number of the slot that a primary holds. */
  slot: 'backup.example.com/slot',
  /** The strategy under which the pod was created, for schedulers that want to know. */
  strategy: 'backup.example.com/strategy',
  /** Which template the pod was made from. */
  templateHash: 'backup.example.com/template-hash',
  /** Under which key a cold backup was made: its id. It stays when the pod is woken. */
  wakeKey: 'backup.example.com/wake-key',
  /** What memory it can be given, and what its own could be given to; only of pods made for memory. */
  restoreHash: 'backup.example.com/restore-hash',
} as const

/** Kubernetes' own, as for pods of a ReplicaSet: of pods that are equally ready the one with the lowest goes first. */
export const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'

export const annotations = {
  /** Grows with each promotion of the slot. */
  epoch: 'backup.example.com/epoch',
  /** Container ID of the gate that was woken, so that a later life of the gate is recognised. */
  openedGate: 'backup.example.com/opened-gate',
  /**
   * Written by people on a primary: its memory is to be saved now. Any word of up to 64 printable characters that has not
   * been there before; the agent repeats it in its report when a checkpoint that began after it is complete.
   */
  checkpointRequested: 'backup.example.com/checkpoint-requested',
  /**
   * Written by people on a primary: its slot is to go to a hot backup, with its memory up to its last instruction. Any
   * value but an empty one; taken off again, the primary stays.
   */
  handoverRequested: 'backup.example.com/handover-requested',
  /**
   * Written by a model outside on any pod of a set: how much it wants this pod, a whole number. Under the strategy
   * `annotated` the highest is converted first and the lowest is deleted first; without a number a pod counts as 0.
   */
  preferenceRequested: 'backup.example.com/preference-requested',
} as const
