/** Questions to the API server itself: a cache may be stale, and the actions that follow cannot be taken back. */
import type { SlotKey } from '../../api/slot-key.ts'
import { groupOf, parseSlotLease, type SlotLease, slotOfPod } from '../../api/slot-lease.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import { isReady } from '../../kube/ready.ts'
import { leases, type Pod, pods } from '../../kube/resources.ts'

/** `Released`: it has lost the label of its group, and runs on as a pod like any other. `Gone`: also if it has finished. */
export type Presence = 'Here' | 'Released' | 'Gone'

export interface PodKey {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface Inquiry {
  /** The Lease of a slot, of any incarnation; undefined: there is none that can be read. @throws KubeError. */
  lease(key: Pick<SlotKey, 'namespace' | 'name'>, signal: AbortSignal): Promise<SlotLease | undefined>
  /** Whether this very pod exists and is not being deleted. @throws KubeError. */
  isThere(pod: PodKey, signal: AbortSignal): Promise<boolean>
  /** Whether this very pod exists, is not being deleted, and has not had another slot than this one. @throws KubeError. */
  couldTake(pod: PodKey, slot: string, signal: AbortSignal): Promise<boolean>
  /** Whether this very pod is ready. @throws KubeError. */
  isReady(pod: PodKey, signal: AbortSignal): Promise<boolean>
  /** Asks the API server whether this node has a pod with this uid. @throws KubeError. */
  presenceOf(uid: string, signal: AbortSignal): Promise<Presence>
  /** Whether an operator leads: its Lease is being renewed. Takes a second. @throws KubeError. */
  operatorLeads(signal: AbortSignal): Promise<boolean>
}

export interface InquiryOptions {
  readonly api: Pick<Api, 'get' | 'list'>
  readonly node: string
  /** Lease of the operator's election. */
  readonly election: { readonly namespace: string; readonly name: string }
  readonly clock: Pick<Clock, 'sleep'>
}

const timeoutMs = 2_000
/** A leader renews its Lease three times within this time. */
const renewalMs = 1_000

export function createInquiry({ api, node, election, clock }: InquiryOptions): Inquiry {
  const stays = async ({ namespace, name, uid }: PodKey, signal: AbortSignal): Promise<Pod | undefined> => {
    const pod = await unlessMissing(api.get(pods, { namespace, name }, { signal, timeoutMs }))
    return pod?.metadata.uid === uid && pod.metadata.deletionTimestamp === undefined ? pod : undefined
  }
  return {
    async lease({ namespace, name }, signal) {
      const lease = await unlessMissing(api.get(leases, { namespace, name }, { signal, timeoutMs }))
      return lease && parseSlotLease(lease)
    },
    isThere: async (pod, signal) => (await stays(pod, signal)) !== undefined,
    async couldTake(pod, slot, signal) {
      const found = await stays(pod, signal)
      return found !== undefined && (slotOfPod(found.metadata) ?? slot) === slot
    },
    async isReady(pod, signal) {
      const found = await stays(pod, signal)
      return found !== undefined && isReady(found)
    },
    async presenceOf(uid, signal) {
      const query = { fieldSelector: `spec.nodeName=${node}` }
      const { items } = await api.list(pods, query, { signal, timeoutMs: 5 * timeoutMs })
      const pod = items.find(({ metadata }) => metadata.uid === uid)
      const phase = pod?.status?.phase
      if (pod === undefined || phase === 'Succeeded' || phase === 'Failed') return 'Gone'
      return groupOf(pod.metadata) === undefined ? 'Released' : 'Here'
    },
    async operatorLeads(signal) {
      const look = () => unlessMissing(api.get(leases, election, { signal, timeoutMs }))
      const before = await look()
      if (!before?.spec?.holderIdentity) return false
      await clock.sleep(renewalMs, signal)
      const now = await look()
      return now?.spec?.holderIdentity !== '' && now?.spec?.renewTime !== before.spec.renewTime
    },
  }
}

async function unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  }
}
