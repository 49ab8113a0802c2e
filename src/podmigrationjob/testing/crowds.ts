/** Nodes that are full of pods, and the pod of a Reservation that finds no room. */
import type { NodeRoom, PodFacts } from '../decide/world.ts'
import { podWith } from './worlds.ts'

export const node = (name: string, cpu: number, over: Partial<NodeRoom> = {}): NodeRoom => ({
  ...{ name, labels: {}, taints: [], isSchedulable: true },
  allocatable: { cpu, pods: 10 },
  ...over,
})
export const web = { type: 'workload', kind: 'Deployment', key: 'Deployment/default/web' } as const
export const batch = { type: 'workload', kind: 'Deployment', key: 'Deployment/default/batch' } as const
export const sized = (name: string, cpu: number, over: Partial<PodFacts> = {}): PodFacts =>
  podWith(name, { owner: batch, node: 'full', requests: { cpu, pods: 1 }, ...over })
/** The pod of the Reservation. */
export const replacement = (over: Partial<PodFacts> = {}) =>
  sized('reservation-job-uid', 2, {
    ...{ uid: 'r', owner: { type: 'none' }, node: undefined, priority: 9 },
    placement: { nodeSelector: { big: 'yes' } },
    ...over,
  })
export const big = { labels: { big: 'yes' } }
export const nodes = [node('full', 4, big), node('spare', 4)]
