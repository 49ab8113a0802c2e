const firstBatch = 8
const widest = 32

/**
 * Runs `task` for every item in batches of 8, 16, 32, 32, ... and stops after the first batch that is not all good:
 * a quota or an admission rule that refuses every pod is met 8 times a pass, not a thousand times.
 * @returns the results of the items that were run, in order.
 */
export async function slowStart<T, R>(
  items: readonly T[],
  task: (item: T) => Promise<R>,
  isGood: (result: R) => boolean,
): Promise<R[]> {
  const results: R[] = []
  let size = firstBatch
  for (let start = 0; start < items.length; size = Math.min(size * 2, widest)) {
    const batch = await Promise.all(items.slice(start, start + size).map(task))
    results.push(...batch)
    if (!batch.every(isGood)) break
    start += size
  }
  return results
}
