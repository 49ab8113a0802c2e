import { Gauge, type Registry } from 'prom-client'
import { metricName } from '../api/metrics.ts'
import type { LeavingPrimary } from './view.ts'

/** @param leaving primaries that have to leave their node now; empty in a process that does not lead. */
export function createDrainMetrics(
  registry: Registry,
  leaving: () => readonly LeavingPrimary[] = () => [],
): void {
  new Gauge({
    name: metricName('drain_primaries'),
    help: 'Primaries with memory on nodes that are drained, by node and state: moving, or waiting for a user or for the next try.',
    labelNames: ['drained_node', 'state'],
    registers: [registry],
    collect() {
      this.reset()
      for (const primary of leaving())
        this.inc({ drained_node: primary.node, state: isWaiting(primary) ? 'waiting' : 'moving' })
    },
  })
}

/** A Migration that has failed is followed by another one, which says nothing yet. */
const isWaiting = ({ waits, last, isMoving }: LeavingPrimary): boolean =>
  waits !== undefined || last !== undefined || !isMoving
