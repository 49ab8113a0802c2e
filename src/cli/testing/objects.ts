/** Objects as the API server would return them. */
import type { BackupPodSet, BackupPodSetStatus } from '../../api/backuppodset.ts'
import { gateContainerName } from '../../api/gate.ts'
import type { NodeReport, NodeReportStatus, SlotReport } from '../../api/node-report.ts'
import { holdInitContainer } from '../../api/pod-contract.ts'
import type { Condition } from '../../kube/conditions.ts'
import type { Pod } from '../../kube/resources.ts'

export const now = Date.parse('2030-01-01T01:00:00Z')
const created = '2030-01-01T00:00:00Z'
export const meta = (name: string) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: created,
})

export const condition = (
  type: string,
  status: 'True' | 'False',
  reason: string,
  message = '',
): Condition => ({
  ...{ type, status, reason, message },
  lastTransitionTime: created,
  observedGeneration: 1,
})

export const goodConditions: readonly Condition[] = [
  condition('Ready', 'True', 'AllInPlace'),
  condition('Progressing', 'False', 'Settled'),
  condition('Degraded', 'False', 'AsExpected'),
  condition('Paused', 'False', 'Running'),
  condition('CheckpointReady', 'True', 'AllProtected'),
]

/** A set with one primary, whose memory is frozen in one hot backup, and without faults. */
export const set = (
  status: Partial<BackupPodSetStatus> = {},
  spec: Partial<BackupPodSet['spec']> = {},
): BackupPodSet => ({
  metadata: { ...meta('web'), namespace: 'shop', generation: 1 },
  spec: {
    replicas: 1,
    hotBackups: 1,
    checkpoint: { interval: '1s' },
    template: { spec: { containers: [{ name: 'app', image: 'app:1' }] } },
    ...spec,
  },
  status: {
    observedGeneration: 1,
    replicas: 1,
    hotbackups: 1,
    coldbackups: 0,
    readyReplicas: 1,
    readyHotbackups: 1,
    gatedColdbackups: 0,
    slots: [
      {
        ...{
          slot: 0,
          pod: 'web-p',
          node: 'n1',
          epoch: 2,
          ready: true,
          generation: 14,
          savedAt: '2030-01-01T00:59:59.160Z',
        },
        ...{ intervalSeconds: 1, pipelineSeconds: 0.21, usableOn: ['n2'], protection: 'Frozen' },
        ...{
          lastFailover: {
            from: 'web-old',
            to: 'web-p',
            reason: 'Died',
            seconds: 0.123,
            at: '2030-01-01T00:50:00Z',
            stateAge: 0.4,
          },
        },
      },
    ],
    lastFailover: {
      ...{
        slot: 0,
        from: 'web-old',
        to: 'web-p',
        reason: 'Died',
        seconds: 0.123,
        at: '2030-01-01T00:50:00Z',
      },
      ...{ generation: 3, stateAge: 0.4 },
    },
    conditions: goodConditions,
    ...status,
  },
})

const ready = (status: 'True' | 'False', message?: string) => ({
  type: 'Ready',
  status,
  ...(message === undefined ? {} : { message }),
})

export function pod(
  name: string,
  kind: string,
  over: { node?: string; status?: object; deleted?: boolean } = {},
): Pod {
  const init =
    kind === 'hotbackup'
      ? [{ name: holdInitContainer }]
      : kind === 'coldbackup'
        ? [{ name: gateContainerName, restartPolicy: 'Always' }]
        : []
  return {
    metadata: {
      ...meta(name),
      namespace: 'shop',
      labels: {
        type: kind,
        'backup.example.com/backuppodset': 'web',
        ...(kind === 'primary' ? { 'backup.example.com/slot': '0' } : {}),
      },
      ...(kind === 'primary' ? { annotations: { 'backup.example.com/epoch': '2' } } : {}),
      ...(over.deleted ? { deletionTimestamp: created } : {}),
    },
    spec: { nodeName: over.node ?? 'n1', initContainers: init, containers: [{ name: 'app' }] },
    status: { phase: 'Running', conditions: [ready('True')], ...over.status },
  }
}

export const understudyCondition = (status: 'True' | 'False', reason: string, message: string) => ({
  conditions: [ready('False'), { type: 'backup.example.com/understudy', status, reason, message }],
})

export const atGate = {
  phase: 'Pending',
  conditions: [ready('False')],
  initContainerStatuses: [
    {
      name: gateContainerName,
      image: '',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { running: {} },
    },
  ],
}

export const slotReport = (over: Partial<SlotReport>): SlotReport => ({
  ...{
    namespace: 'shop',
    name: 'web-0',
    incarnation: '0123abcd',
    role: 'holder',
    generation: 14,
    bytes: 3_140_000,
  },
  ...over,
})

export const report = (name: string, over: Partial<NodeReportStatus> = {}): NodeReport => ({
  metadata: meta(name),
  status: {
    ...{
      version: '0.1.0',
      address: `${name}:9443`,
      fingerprint: '',
      kernel: '6.18',
      criu: '4.2',
      architecture: 'x86_64',
    },
    checks: [
      { name: 'cgroups', ok: true, message: 'v1' },
      { name: 'canary', ok: true, message: 'saved in 9.1 ms' },
    ],
    ready: true,
    slots: [],
    updatedAt: '2030-01-01T00:59:58Z',
    ...over,
  },
})
