import type { IntOrPercent, MigrationControllerArgs } from '../../api/migration-controller-args.ts'

/** Larger workloads have a threshold in percent, if none is set. */
const largest = 10
const smallest = 4

const standard = (replicas: number): IntOrPercent =>
  replicas > largest
    ? { type: 'percent', value: 10 }
    : { type: 'number', value: replicas >= smallest ? 2 : 1 }

/**
 * Returns how many pods of a workload may migrate, or be unavailable, at once: at most all. Percentages are rounded up, and 0
 * means none. With `Down` they are rounded down to at least one, and 0 means the default.
 */
export function threshold(
  replicas: number,
  limit: IntOrPercent | undefined,
  rounding: MigrationControllerArgs['rounding'],
): number {
  const { type, value } = limit ?? standard(replicas)
  const isDown = rounding === 'Down'
  if (isDown && value === 0) return threshold(replicas, undefined, rounding)
  // Whole numbers first: 100 * 0.07 is a little more than 7.
  const exact = type === 'percent' ? (replicas * value) / 100 : value
  const rounded = isDown ? Math.max(1, Math.floor(exact)) : Math.ceil(exact)
  return Math.min(replicas, rounded)
}
