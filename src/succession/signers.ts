/** Whose signature the memory of each epoch bears: the node that was the primary's then. Kept in the slot's Lease. */
import type { Signer, SlotLease } from '../api/slot-lease.ts'

/** Memory is rarely older than the epoch before; an app that dies at once again and again makes many epochs. */
const mostEpochs = 32

type Known = Pick<SlotLease, 'epoch' | 'signers'>

/** For a slot that goes on in another epoch, on a node that signs with this key, or with none. */
export function signersAfter({ epoch: before, signers = [] }: Known, next: Signer): readonly Signer[] {
  // Its agent was of an earlier version, or nobody knew it: what it has saved is not signed, and shall not be lost.
  const isKnown = signers.some(({ epoch }) => epoch === before)
  return [next, ...(isKnown ? [] : [{ epoch: before, fingerprint: undefined }]), ...signers].slice(
    0,
    mostEpochs,
  )
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
): readonly Signer[] | undefined {
  if (fingerprint === undefined) return signers
  const present = signers?.filter(signer => signer.epoch === epoch && signer.fingerprint !== undefined) ?? []
  if (present.some(signer => signer.fingerprint === fingerprint)) return signers
  if (present.length === 0 && !isSigned) return signers
  const others = signers?.filter(signer => signer.epoch !== epoch || signer.fingerprint !== undefined) ?? []
  return [{ epoch, fingerprint }, ...others].slice(0, mostEpochs)
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
