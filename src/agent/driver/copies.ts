/**
 * Room for the copies that restores work with. They lie in the tmpfs of the generations, beside what those may take up, and
 * a tenant says how large they are: of what its container had open and deleted each restore makes a copy.
 */
import { CheckpointError } from '../../checkpoint/errors.ts'
import { mostOf } from '../../kube/fair-share.ts'

export interface Copies {
  /** Takes room for a working directory. @throws CheckpointError StoreFull */
  take(directory: string, namespace: string, bytes: number): void
  /** To be called when the directory is gone. One that has nothing gives nothing. */
  giveBack(directory: string): void
}

export interface CopiesOptions {
  /** Bytes for copies alone. A budget that is full of generations keeps no generation from being brought back. */
  readonly bytes: number
  /** What one namespace may take of them, of what all others leave, 0 to 1. */
  readonly share: number
  /** More than that is taken from the budget of generations. @throws CheckpointError StoreFull */
  readonly lend: (namespace: string, bytes: number) => () => void
}

interface Taken {
  readonly namespace: string
  /** Of the room for copies alone. */
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
