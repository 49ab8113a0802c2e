/** Objects that move pods, as the API server would return them. */
import type { MigratingPod, MigratingPodState } from '../../api/migrating-pod.ts'
import type { Migration, MigrationPhase } from '../../api/migration.ts'
import { memoryAnnotation } from '../../api/pod-contract.ts'
import type { JobPhase, PodMigrationJob } from '../../api/pod-migration-job.ts'
import type { Node, Pod, PodDisruptionBudget } from '../../kube/resources.ts'
import { meta, pod } from './objects.ts'

const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
const time = '2030-01-01T00:10:00Z'
const told = (type: string, status: 'True' | 'False' | 'Unknown', reason: string, message: string) => ({
  ...{ type, status, reason, message, lastTransitionTime: time, observedGeneration: 1 },
})

/** A Migration of the primary `web-p` on node n1. */
export function migration(
  name: string,
  phase: MigrationPhase | undefined,
  reason = 'Begins',
  over: { readonly drains?: string; readonly pod?: string; readonly at?: string } = {},
): Migration {
  const { drains, pod: source = 'web-p', at = time } = over
  return {
    metadata: {
      ...{ ...meta(name), namespace: 'shop', creationTimestamp: at },
      ...(drains !== undefined && { annotations: { 'backup.example.com/drained-node': drains } }),
    },
    spec: { source: { name: source, uid: `uid-${source}` } },
    ...(phase !== undefined && {
      status: {
        phase,
        source: { uid: `uid-${source}`, node: 'n1', set: 'web', slot: 0 },
        conditions: [
          told(
            'Succeeded',
            phase === 'Succeeded' ? 'True' : phase === 'Failed' ? 'False' : 'Unknown',
            reason,
            'the words',
          ),
        ],
      },
    }),
  }
}

export function migratingPod(
  state: MigratingPodState | undefined,
  reason = 'AllInPlace',
  over: Partial<NonNullable<MigratingPod['status']>> = {},
): MigratingPod {
  return {
    metadata: { ...meta('web'), namespace: 'shop' },
    spec: { template },
    ...(state !== undefined && {
      status: {
        ...{ state, activePod: 'web-3', node: 'n1' },
        conditions: [
          told('Ready', state === 'Running' ? 'True' : 'False', reason, 'the words'),
          told('CheckpointReady', 'True', 'AllProtected', ''),
        ],
        ...over,
      },
    }),
  }
}

export const job = (name: string, phase: JobPhase | undefined, reason = 'GlobalBudget'): PodMigrationJob => ({
  metadata: meta(name),
  spec: { podRef: { namespace: 'shop', name: 'web-p' } },
  ...(phase !== undefined && {
    status: {
      ...{ phase, reason, message: 'the words' },
      conditions: [told('Arbitrated', 'False', reason, 'the words')],
    },
  }),
})

/** A primary of the set `web` whose memory is kept, on node n1. */
export function keptPrimary(name = 'web-p'): Pod {
  const { metadata, ...rest } = pod(name, 'primary')
  return {
    ...rest,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, 'backup.example.com/role': 'primary' },
      annotations: { [memoryAnnotation]: 'x' },
    },
  }
}

export const cordoned = (node: Node, notes: Readonly<Record<string, string>> = {}): Node => ({
  ...node,
  metadata: { ...node.metadata, annotations: notes },
  spec: { unschedulable: true },
})

export const budget = (name: string, matchLabels: Readonly<Record<string, string>>): PodDisruptionBudget => ({
  metadata: { ...meta(name), namespace: 'shop' },
  spec: { selector: { matchLabels } },
})
