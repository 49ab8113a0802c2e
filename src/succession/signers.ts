/** Whose signature the memory of each epoch bears: the node that was the primary's then. Kept in the slot's Lease. */
import type { Signer, SlotLease } from '../api/slot-lease.ts'

/**
 * Memory is rarely older than the epoch before; but an app that dies at once again and again makes many epochs in which
 * nothing is saved. So many are remembered whether anybody has memory of them or not.
 */
const mostEpochs = 32
/** And so many at all: a Lease has room for no more. */
const mostEver = 1024

type Known = Pick<SlotLease, 'epoch' | 'signers'>

/** Whether somebody has memory of this epoch, or may have. */
export type IsKeptOf = (epoch: number) => boolean

/** The latest, and those whose memory would be refused by all if it were not known who has signed it. */
const remembered = (signers: readonly Signer[], isKeptOf: IsKeptOf): readonly Signer[] =>
  signers
    .filter(
      ({ epoch, fingerprint }, index) =>
        index < mostEpochs ||
        isKeptOf(epoch) ||
        // Of all epochs before it nothing is asked, either.
        (fingerprint === undefined && index === signers.length - 1),
    )
    .slice(0, mostEver)

/** For a slot that goes on in another epoch, on a node that signs with this key, or with none. */
export function signersAfter(
  { epoch: before, signers = [] }: Known,
  next: Signer,
  isKeptOf: IsKeptOf,
): readonly Signer[] {
  // Its agent was of an earlier version, or nobody knew it: what it has saved is not signed, and shall not be lost.
  const isKnown = signers.some(({ epoch }) => epoch === before)
  const all = [next, ...(isKnown ? [] : [{ epoch: before, fingerprint: undefined }]), ...signers]
  return remembered(all, isKeptOf)
}

/**
 * For a slot that goes on as it is. Undefined: nothing is known yet.
 * @param fingerprint of its node's agent, if that signs.
 * @param isSigned nothing that is not signed would be missed: there is none, or what is signed has come to a holder.
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
 * What is wrong with a generation of this epoch that bears the signature of this key, or none; undefined: nothing.
 *
 * A Lease that names no signer was written by an operator of an earlier version: everything is accepted, as it was then.
 */
export function signerFault(
  { signers }: Known,
  epoch: number,
  signer: string | undefined,
): string | undefined {
  if (signers === undefined) return undefined
  const known = signers.filter(each => each.epoch === epoch)
  if (known.length === 0) {
    // Nobody signed in the epochs before one in which nobody did.
    const later = signers.filter(each => each.epoch > epoch).sort((a, b) => a.epoch - b.epoch)[0]
    return later !== undefined && later.fingerprint === undefined
      ? undefined
      : `epoch ${epoch}, and the Lease does not know whose key signed then`
  }
  if (known.some(({ fingerprint }) => fingerprint === undefined || fingerprint === signer)) return undefined
  return signer === undefined
    ? `it is not signed, and the node that saved epoch ${epoch} signs`
    : `it is signed with the key ${signer}, and epoch ${epoch} was saved by ${known[0]?.fingerprint}`
}
