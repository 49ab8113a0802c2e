export interface Summary {
  readonly n: number
  readonly median: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

/**
 * Returns the middle value; of an even number the mean of the two in the middle.
 * @throws RangeError without values
 */
export function median(values: readonly number[]): number {
  const sorted = ascending(values)
  const half = Math.floor(sorted.length / 2)
  const upper = at(sorted, half)
  return sorted.length % 2 === 1 ? upper : (at(sorted, half - 1) + upper) / 2
}

/**
 * Returns the nearest rank: the smallest value that at least `rank` percent of all values do not exceed. It is always a
 * measured value; with few values the high ranks are the maximum.
 */
export function percentile(values: readonly number[], rank: number): number {
  if (!(rank > 0 && rank <= 100)) throw new RangeError(`no percentile: ${rank}`)
  const sorted = ascending(values)
  return at(sorted, Math.ceil((rank / 100) * sorted.length) - 1)
}

export function summarise(values: readonly number[]): Summary {
  return {
    n: values.length,
    median: median(values),
    p95: percentile(values, 95),
    p99: percentile(values, 99),
    max: percentile(values, 100),
  }
}

function ascending(values: readonly number[]): readonly number[] {
  if (values.length === 0) throw new RangeError('no measured values')
  const odd = values.find(value => !Number.isFinite(value))
  if (odd !== undefined) throw new RangeError(`not a measured value: ${odd}`)
  return values.toSorted((a, b) => a - b)
}

function at(values: readonly number[], index: number): number {
  const value = values[index]
  if (value === undefined) throw new RangeError(`no value at ${index} of ${values.length}`)
  return value
}
