import type { Facts, Served, SlotFacts } from './facts.ts'
import { isOfSlot } from './facts.ts'
import { nameOf, seconds, type Violation } from './violation.ts'

/**
 * From the first answer of an epoch on, the pods of earlier epochs answer no call that begins then. If their node was
 * paused at that time, they answer no earlier call either: nothing of it was on its way.
 */
export function oldEpochs({ begin }: Facts, { slot, served, resumes }: SlotFacts): Violation[] {
  const found: Violation[] = []
  const wasPaused = ({ end, answer }: Served, newest: Served) =>
    resumes.some(({ pod, at }) => pod === answer.pod && at > newest.end && at < end)
  let newest = served[0]
  for (const call of served) {
    // In the order of their ends, so `newest` is the first answer of the highest epoch that was known by then.
    if (newest === undefined || call.epoch > newest.epoch) newest = call
    else if (call.epoch < newest.epoch && (call.start > newest.end || wasPaused(call, newest)))
      found.push({
        rule: 'OldEpoch',
        slot,
        says:
          `epoch ${call.epoch} answered ${nameOf(call, begin)} ` +
          `${seconds(call.end - newest.end)} after epoch ${newest.epoch} had answered ${nameOf(newest, begin)}`,
      })
  }
  return found
}

/** The Lease is a register with compare-and-swap: no epoch has two holders, and none comes back. */
export function holders({ begin }: Facts, { slot, leases }: SlotFacts): Violation[] {
  const found: Violation[] = []
  for (const [index, lease] of leases.entries()) {
    const before = leases[index - 1]
    if (before === undefined) continue
    const is = `${lease.pod} in epoch ${lease.epoch} of incarnation ${lease.incarnation}`
    const was = `${before.pod} in epoch ${before.epoch} of incarnation ${before.incarnation}`
    const isWrong =
      lease.incarnation === before.incarnation
        ? lease.epoch < before.epoch || (lease.epoch === before.epoch && lease.uid !== before.uid)
        : true
    if (isWrong)
      found.push({ rule: 'TwoHolders', slot, says: `after ${was} came ${is} (${seconds(lease.at - begin)})` })
  }
  return found
}

/** Takeovers have a cause. */
export function unprovoked({ begin, outvotedAt }: Facts, { slot, epochs, faults }: SlotFacts): Violation[] {
  return epochs.slice(1).flatMap((epoch, index) => {
    // A former round has judged earlier ones.
    if (
      epoch.at < begin ||
      epoch.at >= outvotedAt ||
      faults.some(({ at, mayPromote }) => mayPromote && at <= epoch.at)
    )
      return []
    const from = epochs[index]?.pod ?? 'no pod'
    return [
      {
        rule: 'Unprovoked' as const,
        slot,
        says: `${epoch.pod} followed ${from} in epoch ${epoch.epoch} at ${seconds(epoch.at - begin)}, without a fault`,
      },
    ]
  })
}

/** Answers that no client of the slot may ever get. */
export function strangers({ begin, slots }: Facts, mine: SlotFacts): Violation[] {
  const { slot, birth, epochs, calls, faults } = mine
  const named = new Set(epochs.map(({ pod }) => pod))
  return calls.flatMap((call): Violation[] => {
    const { answer } = call
    if (answer === undefined) return []
    const other = slots.find(each => each.slot !== slot && isOfSlot(each.birth, answer))
    if (other !== undefined)
      return [{ rule: 'WrongSlot', slot, says: `memory of slot ${other.slot}: ${nameOf(call, begin)}` }]
    const mayBeEmpty = call.client === 'direct' && faults.some(fault => fault.mayAnswerEmpty)
    if (answer.startedAt !== birth.startedAt || !isOfSlot(birth, answer))
      return mayBeEmpty
        ? []
        : [{ rule: 'EmptyAnswer', slot, says: `began at ${answer.startedAt}: ${nameOf(call, begin)}` }]
    if (!named.has(answer.pod)) return [{ rule: 'BackupServed', slot, says: nameOf(call, begin) }]
    return []
  })
}
