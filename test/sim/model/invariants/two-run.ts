/** TwoRun: two apps run with one memory. */
import type { Ground } from './ground.ts'
import { running } from './running.ts'

export function twoRun({ cluster, bounds, violate, health, fates }: Ground): (elapsed: number) => void {
  const together = new Map<string, number>()
  return elapsed => {
    const byGenesis = Map.groupBy(
      running(cluster).filter(({ container }) => container !== 'proxy'),
      ({ container, app }) => `${container} ${app.memory.genesis}`,
    )
    for (const key of together.keys()) if ((byGenesis.get(key)?.length ?? 0) < 2) together.delete(key)
    for (const [key, apps] of byGenesis) {
      if (apps.length < 2) continue
      const isBad =
        health.operatorWorks() &&
        apps.every(
          ({ node, pod }) => health.isAtWork(node) || health.isLate(node) || fates.isGoing(node, pod),
        )
      const ms = isBad ? (together.get(key) ?? 0) + elapsed : 0
      together.set(key, ms)
      if (ms > bounds.twoRunMs)
        violate(
          'TwoRun',
          key,
          `${key} runs in ${apps.map(({ pod, node }) => `${pod.name} on ${node.machine.name}`).join(' and ')} for ${ms} ms`,
        )
    }
  }
}
