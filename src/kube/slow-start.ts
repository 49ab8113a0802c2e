const firstBatch = 8
const widest = 32

/**
 * Runs `task` for every item in batches of 8, 16, 32, 32, ... and stops after the first batch with a bad result. So a
 * quota or an admission rule that rejects every pod gets 8 requests a pass, not a thousand.
 * @param mayGoOn is called before each batch; false ends the run.
 * @returns the results of the items that were run, in order.
 */
export async function slowStart<T, R>(
  items: readonly T[],
  task: (item: T) => Promise<R>,
  isGood: (result: R) => boolean,
  mayGoOn: (batch: readonly T[]) => boolean = () => true,
): Promise<R[]> {
  const results: R[] = []
  let size = firstBatch
  for (let start = 0; start < items.length; size = Math.min(size * 2, widest)) {
    const next = items.slice(start, start + size)
    if (!mayGoOn(next)) break
    const batch = await Promise.all(next.map(task))
    results.push(...batch)
    if (!batch.every(isGood)) break
    start += size
  }
  return results
}
