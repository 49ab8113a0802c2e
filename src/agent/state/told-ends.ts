/** The ends of watched containers that the sentinel has told: right after a death it is busy, and takes long to answer. */
import type { Death } from '../sentinel/client.ts'
import type { WatchName } from './watch-name.ts'

export interface ToldEnds {
  note(name: WatchName, death: Pick<Death, 'grave' | 'unixNs'>): void
  /**
   * True if each of these containers of the pod has ended, and the redirect of each was closed at an end after that time, in
   * Unix ms.
   *
   * @param watched ids of the containers that run in the pod, or ran last, by name.
   */
  haveAll(uid: string, watched: ReadonlyMap<string, string>, since: number): boolean
  forget(uid: string): void
}

type End = Pick<Death, 'grave' | 'unixNs'> & Pick<WatchName, 'containerId'>

export function createToldEnds(): ToldEnds {
  /** By uid, then by container: the latest. */
  const ends = new Map<string, Map<string, End>>()
  return {
    note({ uid, container, containerId }, { grave, unixNs }) {
      const told = ends.get(uid) ?? new Map<string, End>()
      ends.set(uid, told.set(container, { containerId, grave, unixNs }))
    },
    haveAll(uid, watched, since) {
      const told = ends.get(uid)
      return (
        watched.size > 0 &&
        [...watched].every(([container, containerId]) => {
          const end = told?.get(container)
          return end?.containerId === containerId && isClosedSince(end, since)
        })
      )
    },
    forget: uid => void ends.delete(uid),
  }
}

/** True if that end closed the redirect of its watch after that time, in Unix ms. */
export const isClosedSince = (
  { grave, unixNs }: Pick<Death, 'grave'> & { readonly unixNs: bigint | undefined },
  time: number,
): boolean => grave === 'closed' && unixNs !== undefined && Number(unixNs / 1_000_000n) > time
