/** Labels and annotations of our pods, and the kinds in the label `type`. The only table of these. */

export const podKinds = ['primary', 'hotbackup', 'coldbackup'] as const
export type PodKind = (typeof podKinds)[number]

export const isPodKind = (value: string | undefined): value is PodKind =>
  podKinds.some(kind => kind === value)

/** Everything under this prefix belongs to the operator; templates may not use it. */
export const prefix = 'backup.example.com/'

export const labels = {
  /** The kind of pod. Services select by it, so it keeps the short name from the paper. */
  type: 'type',
  /** Repeats `type` on pods of sets, and stands in for it on all other pods (`pod-kind.ts`). */
  role: 'backup.example.com/role',
  /** Name of the set. */
  set: 'backup.example.com/backuppodset',
  /** Number of the slot of a primary. */
  slot: 'backup.example.com/slot',
  /** The strategy under which the pod was created, for custom schedulers. */
  strategy: 'backup.example.com/strategy',
  /** Hash of the template that the pod was created from. */
  templateHash: 'backup.example.com/template-hash',
  /** Id of the key under which a cold backup was created. It stays when the pod is woken. */
  wakeKey: 'backup.example.com/wake-key',
  /**
   * Compatibility of memory: equal hashes mean that one pod's memory can be restored in the other. Only on pods made
   * for memory.
   */
  restoreHash: 'backup.example.com/restore-hash',
} as const

/** Kubernetes' own annotation, as for pods of a ReplicaSet: among equally ready pods, the lowest is deleted first. */
export const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'

export const annotations = {
  /** Increases with each promotion of the slot. */
  epoch: 'backup.example.com/epoch',
  /** Container ID of the gate that was woken, to recognise a later run of the gate. */
  openedGate: 'backup.example.com/opened-gate',
  /**
   * A user sets this on a primary to save its memory now. Any new value of up to 64 printable characters. The agent
   * repeats it in its report once a checkpoint that began after it is complete.
   */
  checkpointRequested: 'backup.example.com/checkpoint-requested',
  /**
   * A user sets this on a primary to hand its slot over to a hot backup, with its memory up to the last instruction.
   * Any value but an empty one; if the user removes it, the primary stays.
   */
  handoverRequested: 'backup.example.com/handover-requested',
  /**
   * An external model sets this on any pod of a set: its preference for the pod, an integer. Under the strategy
   * `annotated`, the highest is converted first and the lowest is deleted first; without it a pod counts as 0.
   */
  preferenceRequested: 'backup.example.com/preference-requested',
  /**
   * An administrator sets this on a node whose primaries are to stay although it is cordoned. Any value but an empty one; it has no
   * effect on evictions.
   */
  stayRequested: 'backup.example.com/stay-requested',
  /** The node that a Migration empties; the operator writes it on the Migrations that it makes. */
  drainedNode: 'backup.example.com/drained-node',
  /** A user sets this on a set to `allowed`: `kubectl understudy drill` may delete one of its primaries. */
  drill: 'backup.example.com/drill',
} as const
