/** The signers of each epoch's memory: the node that had the primary then signs it. The slot's Lease keeps the list. */
import type { Signer, SlotLease } from '../../api/slot-lease.ts'

/**
 * Memory is rarely older than the previous epoch, but an app that dies at once again and again makes many epochs in
 * which no generation is saved. So many epochs are remembered, whether or not a node has memory of them.
 */
const mostEpochs = 32
/** The absolute limit: a Lease has no room for more. */
const mostEver = 1024

type Known = Pick<SlotLease, 'epoch' | 'signers'>

/** Returns whether any node has, or may have, memory of this epoch. */
export type IsKeptOf = (epoch: number) => boolean

/** Returns the latest signers, and those without which all agents would refuse kept memory. */
const remembered = (signers: readonly Signer[], isKeptOf: IsKeptOf): readonly Signer[] =>
  signers
    .filter(
      ({ epoch, fingerprint }, index) =>
        index < mostEpochs ||
        isKeptOf(epoch) ||
        // An unsigned last entry also means that no earlier epoch needs a signature.
        (fingerprint === undefined && index === signers.length - 1),
    )
    .slice(0, mostEver)

/** Returns the signers of a slot that continues in another epoch, on a node that signs with this key, or with none. */
export function signersAfter(
  { epoch: before, signers = [] }: Known,
  next: Signer,
  isKeptOf: IsKeptOf,
): readonly Signer[] {
  // The agent was of an earlier version, or not known: the memory that it has saved is unsigned, and must not be lost.
  const isKnown = signers.some(({ epoch }) => epoch === before)
  const all = [next, ...(isKnown ? [] : [{ epoch: before, fingerprint: undefined }]), ...signers]
  return remembered(all, isKeptOf)
}

/**
 * Returns the signers of a slot that continues in its epoch. Undefined: none is known yet.
 * @param fingerprint of the key of its node's agent, if that signs.
 * @param isSigned true if no unsigned memory would be missed: there is none, or a holder has signed memory.
 */
export function signersNow(
  { epoch, signers }: Known,
  fingerprint: string | undefined,
  isSigned: boolean,
  isKeptOf: IsKeptOf,
): readonly Signer[] | undefined {
  if (fingerprint === undefined) return signers
  const present = signers?.filter(signer => signer.epoch === epoch && signer.fingerprint !== undefined) ?? []
  if (present.some(signer => signer.fingerprint === fingerprint)) return signers
  if (present.length === 0 && !isSigned) return signers
  const others = signers?.filter(signer => signer.epoch !== epoch || signer.fingerprint !== undefined) ?? []
  return remembered([{ epoch, fingerprint }, ...others], isKeptOf)
}

/**
 * Returns the fault in a generation of this epoch that bears the signature of this key, or none; undefined if there is
 * no fault.
 *
 * A Lease that names no signer was written by an operator of an earlier version: everything is accepted, as it was
 * then.
 */
export function signerFault(
  { signers }: Known,
  epoch: number,
  signer: string | undefined,
): string | undefined {
  if (signers === undefined) return undefined
  const known = signers.filter(each => each.epoch === epoch)
  if (known.length === 0) {
    // If no agent signed in an epoch, none signed in the epochs before it.
    const later = signers.filter(each => each.epoch > epoch).sort((a, b) => a.epoch - b.epoch)[0]
    return later !== undefined && later.fingerprint === undefined
      ? undefined
      : `epoch ${epoch}, but the Lease does not name the signer of that epoch`
  }
  if (known.some(({ fingerprint }) => fingerprint === undefined || fingerprint === signer)) return undefined
  return signer === undefined
    ? `it is not signed, but the node that saved epoch ${epoch} signs`
    : `it is signed with the key ${signer}, but epoch ${epoch} was saved by ${known[0]?.fingerprint}`
}
