/** Records what the API server says about a set, and keeps its latest objects. */
import { type BackupPodSet, backupPodSets } from '../src/api/backuppodset.ts'
import { labels } from '../src/api/labels.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../src/api/numbered-slot.ts'
import { tookOver } from '../src/api/slot-lease.ts'
import type { Api } from '../src/kube/api.ts'
import { type Lease, leases, type Pod, pods } from '../src/kube/resources.ts'
import { follow } from './follow.ts'
import { type Entry, type Epoch, now } from './history.ts'

export interface Recorder {
  /** Latest Leases, by slot. */
  readonly slots: ReadonlyMap<number, NumberedSlotLease>
  /** Pods that exist, by uid. */
  readonly pods: ReadonlyMap<string, Pod>
  set(): BackupPodSet | undefined
}

export interface RecorderOptions {
  readonly api: Api
  readonly namespace: string
  readonly name: string
  readonly tell: (entry: Entry) => void
  /** Called after each change. */
  readonly changed: () => void
  readonly signal: AbortSignal
}

export async function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const { api, namespace, name, tell, changed, signal } = options
  const slots = new Map<number, NumberedSlotLease>()
  const live = new Map<string, Pod>()
  let set: BackupPodSet | undefined
  const labelSelector = `${labels.set}=${name}`
  const sawLease = (lease: Lease) => {
    const parsed = parseNumberedSlotLease(lease)
    if (parsed === undefined) return
    const before = slots.get(parsed.slot)
    slots.set(parsed.slot, parsed)
    if (before === undefined || !isSame(before, parsed)) tell(epochOf(parsed))
  }
  const sawPod = (pod: Pod, isGone: boolean) => {
    const { uid } = pod.metadata
    const before = live.get(uid)
    if (isGone) live.delete(uid)
    else live.set(uid, pod)
    const count = restartsOf(pod)
    if (before !== undefined && count > restartsOf(before) && !isRetired(pod))
      tell({ type: 'restart', at: now(), pod: pod.metadata.name, count })
  }
  const sawSet = (object: BackupPodSet) => {
    if (object.metadata.name !== name) return
    for (const { slot, intervalSeconds, pipelineSeconds } of object.status?.slots ?? []) {
      if (intervalSeconds === undefined || pipelineSeconds === undefined) continue
      const before = set?.status?.slots?.find(each => each.slot === slot)
      if (before?.intervalSeconds === intervalSeconds && before.pipelineSeconds === pipelineSeconds) continue
      tell({ type: 'pace', at: now(), slot, intervalSeconds, pipelineSeconds })
    }
    set = object
  }
  const after =
    <T>(saw: (object: T, isGone: boolean) => void) =>
    ({ object, isGone }: { readonly object: T; readonly isGone: boolean }) => {
      saw(object, isGone)
      changed()
    }
  await follow(api, { resource: backupPodSets, namespace }, after(sawSet), signal)
  await follow(api, { resource: pods, namespace, labelSelector }, after(sawPod), signal)
  await follow(api, { resource: leases, namespace, labelSelector }, after(sawLease), signal)
  return { slots, pods: live, set: () => set }
}

const isSame = (a: NumberedSlotLease, b: NumberedSlotLease): boolean =>
  a.incarnation === b.incarnation && a.epoch === b.epoch && a.holder.uid === b.holder.uid

export const epochOf = ({ slot, incarnation, epoch, holder, handedOverBy }: NumberedSlotLease): Epoch => ({
  ...{ type: 'epoch', at: now(), slot, incarnation, epoch },
  ...{ pod: holder.name, uid: holder.uid },
  ...(handedOverBy !== tookOver && { handedOverBy }),
})

export const restartsOf = ({ status }: Pod): number =>
  (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0)

/** The kubelet may restart the container of a dead primary before the operator deletes the pod. */
const isRetired = ({ metadata }: Pod): boolean =>
  metadata.labels?.[labels.type] === 'retired' || metadata.deletionTimestamp !== undefined
