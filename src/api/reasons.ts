/** Condition types and reasons, and the reasons of events. The only table of these. */

export const conditionTypes = {
  ready: 'Ready',
  available: 'Available',
  progressing: 'Progressing',
  degraded: 'Degraded',
  paused: 'Paused',
  checkpointReady: 'CheckpointReady',
  suspended: 'Suspended',
  cloned: 'Cloned',
  /** Words of kstatus: tools that wait for objects of any kind read these two before `Ready`. */
  reconciling: 'Reconciling',
  stalled: 'Stalled',
} as const

/** Reasons of conditions. */
export const reasons = {
  allInPlace: 'AllInPlace',
  podsMissing: 'PodsMissing',
  allServe: 'AllServe',
  primariesMissing: 'PrimariesMissing',
  rollingOut: 'RollingOut',
  /** Pods keep an older template until a user deletes them. */
  updateOnDelete: 'UpdateOnDelete',
  /** A roll would lose memory, which the set does not allow. */
  updateWouldLoseState: 'UpdateWouldLoseState',
  /** Slots of a roll wait, and a user may have to act. */
  rollWaits: 'RollWaits',
  converging: 'Converging',
  /** Pods have failed to start for so long that waiting for them is pointless. */
  progressDeadlineExceeded: 'ProgressDeadlineExceeded',
  settled: 'Settled',
  /** The app has ended with success, and its work is done. */
  completed: 'Completed',
  paused: 'Paused',
  /** The pods of a suspended set have ended, and its memory is kept. */
  suspended: 'Suspended',
  suspending: 'Suspending',
  /** Primaries that a suspended set still has. */
  saving: 'Saving',
  savePaused: 'SavePaused',
  moving: 'Moving',
  takingOver: 'TakingOver',
  grantOutstanding: 'GrantOutstanding',
  noOtherNode: 'NoOtherNode',
  notAnswering: 'NotAnswering',
  /** Only one node, or none whose agent is heard, has the memory of a suspended slot. */
  memoryAtRisk: 'MemoryAtRisk',
  memoryLost: 'MemoryLost',
  /** Why new slots of a set with `cloneFrom` do not begin yet. */
  noCloneSource: 'NoCloneSource',
  cloneUnfit: 'CloneUnfit',
  cloneNotSaved: 'CloneNotSaved',
  cloneUnsupported: 'CloneUnsupported',
  cloning: 'Cloning',
  cloned: 'Cloned',
  running: 'Running',
  asExpected: 'AsExpected',
  actionFailed: 'ActionFailed',
  podsCrashLooping: 'PodsCrashLooping',
  /** Primaries of a slot fail one after the other, each soon after its takeover. */
  replacementsPaused: 'ReplacementsPaused',
  /** Most nodes with primaries are silent at once, so no pod takes over by votes. */
  operatorBlind: 'OperatorBlind',
  /** A cold backup waits at a gate that the operator cannot open. */
  gateUnreachable: 'GateUnreachable',
  /** The operator has never had a complete list of a resource that sets with memory need. */
  cacheIncomplete: 'CacheIncomplete',
  allProtected: 'AllProtected',
  noAgents: 'NoAgents',
  noNodeReady: 'NoNodeReady',
  nodeNotReady: 'NodeNotReady',
  noUnderstudy: 'NoUnderstudy',
  notSaved: 'NotSaved',
  /** A slot has no primary, and its memory is kept where it cannot be restored at the moment. */
  memoryWaits: 'MemoryWaits',
  /** A slot has had no primary for a while, although a node could restore its memory. */
  noPrimary: 'NoPrimary',
  notStaged: 'NotStaged',
  /** Caveats: memory is kept, with a restriction to be aware of. */
  diskAheadOfMemory: 'DiskAheadOfMemory',
  environmentOfDeadPod: 'EnvironmentOfDeadPod',
  /** No node that keeps the memory of a slot can write it to its disk. */
  notOnDisk: 'NotOnDisk',
  /** The template may run on too few nodes for the configured number of copies. */
  fewerCopies: 'FewerCopies',
  /** The namespace lacks the label by which an administrator allows memory. */
  memoryNotAllowed: 'MemoryNotAllowed',
  /** A claim of the template allows only one node or pod at a time. */
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
  /** A primary's app ended, no pod could take over, and the kubelet restarts it empty. */
  stateLost: 'StateLost',
  /** A slot got a successor without the memory that it had. */
  restoredEmpty: 'RestoredEmpty',
  /** Announces that a slot will lose its memory, where the set allows that; sent before any action. */
  stateWillBeLost: 'StateWillBeLost',
  /** An app that its kubelet had restarted got its pulled state back. */
  restoredInPlace: 'RestoredInPlace',
  /** The set has shrunk: a slot is removed, and its memory is kept for a while. */
  slotRetained: 'SlotRetained',
  /** The set has grown again in time: the slot returns with its memory. */
  slotReclaimed: 'SlotReclaimed',
  /** A slot begins with the memory of another pod. */
  slotCloned: 'SlotCloned',
  /** The set is suspended: the primary of a slot has ended, and its memory is kept. */
  slotSuspended: 'SlotSuspended',
  /** The set resumes: the slot continues with its memory. */
  slotResumed: 'SlotResumed',
  /** The memory of a removed slot is no longer kept. */
  slotForgotten: 'SlotForgotten',
  promotionFailed: 'PromotionFailed',
  retired: 'PodsRetired',
  served: 'ServicesChanged',
  /** Primaries are moved away from a node that is drained. */
  draining: 'Draining',
  /** A primary has not left a node that is drained, and why. */
  drainWaits: 'DrainWaits',
  /** The set's own disruption budget is not there, and why. */
  budgetAbsent: 'BudgetAbsent',
} as const
