/**
 * Redirects of other slots that may lead to a pod of this node. A pod can be the heir of several slots, and then takes one of them. The
 * redirects of the other slots' primaries lead to it until their nodes hear of that, which a node that is cut off or paused
 * does not.
 */
import type { SlotLease } from '../../api/slot-lease.ts'

export interface Strangers {
  /**
   * Notes whose heirs the pods of this node are. To be called for each snapshot, before its tasks begin.
   * @param pods has the uids of the pods; others are forgotten.
   * @param addressOf address of the primary of a slot, as far as it is known.
   */
  note(
    slots: readonly SlotLease[],
    pods: Pick<ReadonlySet<string>, 'has'>,
    addressOf: (lease: SlotLease) => string | undefined,
  ): void
  /** Returns the addresses of the primaries whose heir the pod is or was, except for primaries of this slot; the latest last. */
  of(uid: string, slot: SlotName): readonly string[]
  /** Returns what `noteTold` has noted last for the pod; undefined: not known. */
  told(uid: string): string | undefined
  /** Notes what the agent has told the sentinel about the pod. */
  noteTold(uid: string, what: string | undefined): void
}

type SlotName = Pick<SlotLease, 'namespace' | 'name'>

/** For each pod. The sentinel takes no more. */
const mostAddresses = 64

export function createStrangers(): Strangers {
  /** By uid of the heir: by address, the name of its slot. */
  const byHeir = new Map<string, Map<string, string>>()
  const told = new Map<string, string | undefined>()
  return {
    note(slots, pods, addressOf) {
      for (const known of [byHeir, told])
        for (const uid of known.keys()) if (!pods.has(uid)) known.delete(uid)
      for (const lease of slots) {
        const { heir } = lease
        if (heir === undefined || !pods.has(heir.uid)) continue
        const address = addressOf(lease)
        if (address === undefined) continue
        const noted = byHeir.get(heir.uid) ?? new Map<string, string>()
        // The latest ones are last.
        noted.delete(address)
        noted.set(address, nameOf(lease))
        for (const oldest of noted.keys()) {
          if (noted.size <= mostAddresses) break
          noted.delete(oldest)
        }
        byHeir.set(heir.uid, noted)
      }
    },
    of: (uid, slot) =>
      [...(byHeir.get(uid) ?? [])].flatMap(([address, name]) => (name === nameOf(slot) ? [] : [address])),
    told: uid => told.get(uid),
    noteTold: (uid, what) => void told.set(uid, what),
  }
}

const nameOf = ({ namespace, name }: SlotName) => `${namespace}/${name}`
