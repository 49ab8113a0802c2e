/** Condition types and reasons, and the reasons of events. One table. */

export const conditionTypes = {
  ready: 'Ready',
  progressing: 'Progressing',
  degraded: 'Degraded',
  paused: 'Paused',
  checkpointReady: 'CheckpointReady',
} as const

/** Reasons of conditions. */
export const reasons = {
  allInPlace: 'AllInPlace',
  podsMissing: 'PodsMissing',
  rollingOut: 'RollingOut',
  /** Pods have an older template and go when somebody deletes them. */
  updateOnDelete: 'UpdateOnDelete',
  /** A roll would cost memory that the set does not allow to be lost. */
  updateWouldLoseState: 'UpdateWouldLoseState',
  /** Slots of a roll wait, and somebody may have to do something about it. */
  rollWaits: 'RollWaits',
  converging: 'Converging',
  /** Pods have not started for so long that nobody should wait for it. */
  progressDeadlineExceeded: 'ProgressDeadlineExceeded',
  settled: 'Settled',
  paused: 'Paused',
  running: 'Running',
  asExpected: 'AsExpected',
  actionFailed: 'ActionFailed',
  podsCrashLooping: 'PodsCrashLooping',
  /** Primaries of a slot fail one after the other, each soon after it took over. */
  replacementsPaused: 'ReplacementsPaused',
  /** A cold backup waits at a gate that the operator cannot open. */
  gateUnreachable: 'GateUnreachable',
  /** The operator has never had a complete list of something that sets with memory need. */
  cacheIncomplete: 'CacheIncomplete',
  allProtected: 'AllProtected',
  noAgents: 'NoAgents',
  noNodeReady: 'NoNodeReady',
  nodeNotReady: 'NodeNotReady',
  noUnderstudy: 'NoUnderstudy',
  notSaved: 'NotSaved',
  /** A slot has no primary, and its memory is kept where it cannot be brought back at this moment. */
  memoryWaits: 'MemoryWaits',
  notStaged: 'NotStaged',
  /** Caveats: memory is kept, and there is something to know about it. */
  diskAheadOfMemory: 'DiskAheadOfMemory',
  environmentOfDeadPod: 'EnvironmentOfDeadPod',
  /** No node that keeps memory of a slot can write it to its disk. */
  notOnDisk: 'NotOnDisk',
  /** The template may run on too few nodes for all the copies that are asked for. */
  fewerCopies: 'FewerCopies',
  /** The namespace lacks the label by which an administrator allows memory. */
  memoryNotAllowed: 'MemoryNotAllowed',
  /** A claim of the template has one node or pod at a time. */
  claimNotShared: 'ClaimNotShared',
  claimMissing: 'ClaimMissing',
  claimUnread: 'ClaimUnread',
  pullFailed: 'PullFailed',
  stateTooLarge: 'StateTooLarge',
  stateBudgetExceeded: 'StateBudgetExceeded',
} as const

export const eventReasons = {
  created: 'PodsCreated',
  converted: 'PodsConverted',
  deleted: 'PodsDeleted',
  failedOver: 'FailedOver',
  replaced: 'PrimaryReplaced',
  slotGiven: 'SlotGiven',
  rewoken: 'PodsRewoken',
  wakeFailed: 'WakeFailed',
  adopted: 'PodsAdopted',
  released: 'PodsReleased',
  actionFailed: 'ActionFailed',
  /** A primary's app ended, nobody could take over, and the kubelet starts it anew. */
  stateLost: 'StateLost',
  /** A slot got a successor without the memory that it had. */
  restoredEmpty: 'RestoredEmpty',
  /** Comes before what costs a slot its memory, where the set allows that. */
  stateWillBeLost: 'StateWillBeLost',
  /** A pulled state was given back to an app that its kubelet had restarted. */
  restoredInPlace: 'RestoredInPlace',
  /** The set has become smaller: a slot is taken away, and its memory is kept for a while. */
  slotRetained: 'SlotRetained',
  /** The set has become larger in time: that slot comes back with its memory. */
  slotReclaimed: 'SlotReclaimed',
  /** The memory of a slot that was taken away is kept no longer. */
  slotForgotten: 'SlotForgotten',
  promotionFailed: 'PromotionFailed',
  retired: 'PodsRetired',
  served: 'ServicesChanged',
} as const
