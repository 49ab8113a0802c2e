/** Work between two turns of the event loop, as bytes. */
const bytesAtOnce = 4 * 1024 * 1024
/** A record of a delta, or a run of pages, costs as much as so many bytes. */
const recordBytes = 16 * 1024

/**
 * Lets other work of the process run now and then. A peer can describe gigabytes in a kilobyte, and neither what the base has in a
 * window nor pages whose digests are known need a wait.
 */
export function createTurns(giveWay: () => Promise<void>): (bytes: number) => Promise<void> | undefined {
  let done = 0
  return bytes => {
    done += bytes + recordBytes
    if (done < bytesAtOnce) return undefined
    done = 0
    return giveWay()
  }
}
