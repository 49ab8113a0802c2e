/**
 * Accounts for the copies that restores work with. They are in the tmpfs of the generations, in addition to the budget
 * of these. The app determines their size: each restore copies the files that its container had open and deleted.
 */
import { CheckpointError } from '../../checkpoint/errors.ts'
import { mostOf } from '../../kube/fair-share.ts'

export interface Copies {
  /** Reserves room for a working directory. @throws CheckpointError StoreFull */
  take(directory: string, namespace: string, bytes: number): void
  /** Releases the room; call it when the directory is gone. Ignores a directory without a reservation. */
  giveBack(directory: string): void
}

export interface CopiesOptions {
  /** Bytes for copies alone, so that a budget full of generations does not prevent a restore. */
  readonly bytes: number
  /** The part that one namespace may take of the bytes that all others leave, 0 to 1. */
  readonly share: number
  /** Takes a larger demand from the budget of generations. @throws CheckpointError StoreFull */
  readonly lend: (namespace: string, bytes: number) => () => void
}

interface Taken {
  readonly namespace: string
  /** Bytes taken from the room for copies alone. */
  readonly bytes: number
  readonly end: () => void
}

export function createCopies({ bytes, share, lend }: CopiesOptions): Copies {
  const taken = new Map<string, Taken>()

  const hasRoom = (namespace: string, wanted: number): boolean => {
    let [own, others] = [0, 0]
    for (const one of taken.values())
      if (one.namespace === namespace) own += one.bytes
      else others += one.bytes
    return own + wanted <= mostOf(bytes, others, share)
  }

  return {
    take(directory, namespace, wanted) {
      if (hasRoom(namespace, wanted)) {
        taken.set(directory, { namespace, bytes: wanted, end: () => undefined })
        return
      }
      try {
        taken.set(directory, { namespace, bytes: 0, end: lend(namespace, wanted) })
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error
        throw new CheckpointError(error.code, `copies to restore from: ${error.message}`, error)
      }
    },
    giveBack(directory) {
      taken.get(directory)?.end()
      taken.delete(directory)
    },
  }
}
