/** The digests of the pages of files, by the index of the file in its manifest. */
export type PageDigests = ReadonlyMap<number, Buffer>

/** The digests of the pages of a generation, as long as they are in memory. */
export interface HeldDigests {
  get(): PageDigests | undefined
  /** The generation is gone. */
  forget(): void
}

/** 8 MiB for each GiB of memory. */
const mostBytes = 64 * 2 ** 20

const bytesOf = (digests: PageDigests) => [...digests.values()].reduce((sum, { length }) => sum + length, 0)

/**
 * Holds the digests of generations that this process has made, those that were used last. To read and check those of 1 GB takes 20 to 50 ms, and
 * a generation on its way to a successor needs them four times. All namespaces share the room: one of them can only make others slower.
 */
export function createDigestMemory(most = mostBytes): (digests: PageDigests) => HeldDigests {
  /** The ones used last come last. */
  const held = new Map<HeldDigests, { readonly digests: PageDigests; readonly bytes: number }>()
  let sum = 0

  function remove(key: HeldDigests) {
    sum -= held.get(key)?.bytes ?? 0
    held.delete(key)
  }

  return digests => {
    const key: HeldDigests = {
      get() {
        const found = held.get(key)
        if (found === undefined) return undefined
        held.delete(key)
        held.set(key, found)
        return found.digests
      },
      forget: () => remove(key),
    }
    const bytes = bytesOf(digests)
    if (bytes > most) return key
    held.set(key, { digests, bytes })
    sum += bytes
    for (const [oldest] of held) {
      if (sum <= most) break
      remove(oldest)
    }
    return key
  }
}
