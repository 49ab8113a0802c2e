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
  converging: 'Converging',
  settled: 'Settled',
  paused: 'Paused',
  running: 'Running',
  asExpected: 'AsExpected',
  actionFailed: 'ActionFailed',
  podsCrashLooping: 'PodsCrashLooping',
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
} as const
