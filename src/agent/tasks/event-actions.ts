import type { TaskType } from '../decide/task.ts'

/** The action that events name for each task. */
export const eventActions: Readonly<Record<TaskType, string>> = {
  watchPrimary: 'Guard',
  checkpoint: 'Checkpoint',
  handOver: 'HandOver',
  replicate: 'Fetch',
  fetch: 'Fetch',
  copyMemory: 'Copy',
  freeze: 'Freeze',
  verifyRestore: 'Try',
  discard: 'Empty',
  promote: 'Promote',
  probe: 'Probe',
  stopPrimary: 'Stop',
  redirect: 'Redirect',
  leaveServices: 'Redirect',
  wake: 'Wake',
  watchGate: 'Watch',
  guard: 'Fence',
  unguard: 'Fence',
  addPeer: 'Fence',
  removePeer: 'Fence',
  vote: 'Fence',
  unvote: 'Fence',
  contradict: 'Fence',
  sayGo: 'Redirect',
}
