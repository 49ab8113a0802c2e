/** Objects as the API server stores them. */
import type { NodeReport, NodeReportStatus, SlotReport } from '../../api/node-report.ts'
import type { Pod } from '../../kube/resources.ts'

export type PodCondition = NonNullable<NonNullable<Pod['status']>['conditions']>[number]

/** A pod of the namespace `default`; its uid is `uid-NAME`. */
export const makePodObject = (
  name: string,
  {
    metadata,
    spec,
    status,
  }: {
    readonly metadata?: Partial<Pod['metadata']>
    readonly spec?: Partial<NonNullable<Pod['spec']>>
    readonly status?: Pod['status']
  } = {},
): Pod => ({
  metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '1', ...metadata },
  spec: { containers: [{ name: 'app' }], ...spec },
  ...(status && { status }),
})

export const makeSlotReport = (over: Partial<SlotReport> = {}): SlotReport => ({
  ...{ namespace: 'default', name: 'bps-0', incarnation: '00000000' },
  ...{ role: 'holder', generation: 1 },
  ...over,
})

/** The report of an agent that is ready and knows its copies. */
export const makeReport = (
  node: string,
  over: Partial<NodeReportStatus> = {},
): NodeReport & { readonly status: NodeReportStatus } => ({
  metadata: { name: node, uid: `uid-${node}`, resourceVersion: '1' },
  status: {
    ...{ version: '0.1.0', address: `${node}:9443`, fingerprint: 'f' },
    ...{ kernel: '6.18', criu: '4.2', architecture: 'x86_64' },
    checks: [],
    ready: true,
    slots: [],
    slotsKnown: true,
    updatedAt: '2030-01-01T00:00:00Z',
    ...over,
  },
})
