import { describe, expect, it, test } from 'vitest'
import type { Node, Pod } from '../../kube/resources.ts'
import { claimedBy, claimOf, createRoomOf, nodeRoomOf, withoutBallast } from './claims.ts'

type Spec = NonNullable<Pod['spec']>
const asks = (cpu: string, more: object = {}) => ({ name: 'a', resources: { requests: { cpu } }, ...more })

test.each([
  ['nothing', { containers: [{ name: 'a' }] }, {}],
  ['containers together', { containers: [asks('250m'), asks('1')] }, { cpu: 1_250 }],
  [
    'the largest init container',
    { containers: [asks('1')], initContainers: [asks('3'), asks('2')] },
    { cpu: 3_000 },
  ],
  [
    'sidecars beside containers',
    { containers: [asks('1')], initContainers: [asks('1', { restartPolicy: 'Always' })] },
    { cpu: 2_000 },
  ],
  [
    'an init container beside the sidecars before it',
    { containers: [asks('1')], initContainers: [asks('1', { restartPolicy: 'Always' }), asks('4')] },
    { cpu: 5_000 },
  ],
  [
    'the whole pod in place of its containers',
    { containers: [asks('1')], resources: { requests: { cpu: '4' } } },
    { cpu: 4_000 },
  ],
  [
    'its overhead',
    { containers: [asks('1')], overhead: { cpu: '100m', memory: '1Ki' } },
    { cpu: 1_100, memory: 1_024_000 },
  ],
] satisfies [string, Spec, object][])(
  'a pod claims %s, before and after its spec is cut',
  (_, spec, claim) => {
    expect(claimedBy(spec)).toEqual({ ...claim, pods: 1_000 })
    expect(claimedBy(claimOf(spec))).toEqual({ ...claim, pods: 1_000 })
  },
)

describe('the cut spec', () => {
  it('keeps where the pod may run, without the tolerations that each pod has', () => {
    const usual = ['not-ready', 'unreachable'].map(key => ({
      ...{ key: `node.kubernetes.io/${key}`, effect: 'NoExecute' },
      ...{ operator: 'Exists', tolerationSeconds: 300 },
    }))
    const own = { key: 'gpu', operator: 'Exists' }
    const preferred = { weight: 1, podAffinityTerm: { topologyKey: 'zone' } }
    const podAntiAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [preferred] }
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } }
    const spec = {
      ...{ containers: [], nodeSelector: { zone: 'b' }, schedulingGates: [{ name: 'g' }] },
      ...{ affinity: { nodeAffinity, podAntiAffinity }, tolerations: [...usual, own] },
    }
    expect(claimOf(spec)).toEqual({
      ...{ containers: [], nodeSelector: { zone: 'b' }, schedulingGates: [{ name: 'g' }] },
      ...{ affinity: { nodeAffinity }, tolerations: [own] },
    })
  })
})

describe('what else decides where a pod may run', () => {
  const labelSelector = { matchLabels: { app: 'a' } }
  const plain = { topologyKey: 'kubernetes.io/hostname', labelSelector }
  const distance = (term: object): Spec => ({
    containers: [],
    affinity: {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...plain, ...term }] },
    },
  })
  const required = { requiredDuringSchedulingIgnoredDuringExecution: [plain] }
  const spread = (whenUnsatisfiable: string) => [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable }]
  const facts = (spec: Spec) =>
    createRoomOf()({ metadata: { name: 'p', uid: 'u', resourceVersion: '1' }, spec })

  it('its distance to pods on the same node is judged', () => {
    for (const spec of [distance({}), claimOf(distance({}))])
      expect(facts(spec)).toMatchObject({ apart: [labelSelector], isUnjudged: false })
  })

  it.each([
    ['another distance', distance({ topologyKey: 'zone' })],
    ['pods of other namespaces', distance({ namespaces: ['b'] })],
    ['its revision', distance({ matchLabelKeys: ['pod-template-hash'] })],
    ['its nearness to other pods', { containers: [], affinity: { podAffinity: required } }],
    ['an even spread', { containers: [], topologySpreadConstraints: spread('DoNotSchedule') }],
    ['a port of the node', { containers: [{ name: 'a', ports: [{ containerPort: 80, hostPort: 80 }] }] }],
    ['a volume', { containers: [], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }],
    ['a device', { containers: [], resourceClaims: [{ name: 'gpu' }] }],
  ] satisfies [string, Spec][])('%s is not, before and after the spec is cut', (_, spec) => {
    expect(facts(spec).isUnjudged).toBe(true)
    expect(facts(claimOf(spec)).isUnjudged).toBe(true)
  })

  it('what the scheduler only prefers decides nothing', () => {
    const spec: Spec = { containers: [], topologySpreadConstraints: spread('ScheduleAnyway') }
    expect(facts(spec)).toMatchObject({ isUnjudged: false, apart: [] })
  })
})

describe('a node', () => {
  const node = (over: Partial<Node['spec']> = {}, ready = 'True'): Node => ({
    metadata: { name: 'n', uid: 'u', resourceVersion: '1', labels: { zone: 'b' } },
    spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }], ...over },
    status: { allocatable: { cpu: '2', memory: '1Ki' }, conditions: [{ type: 'Ready', status: ready }] },
  })

  it('has room while it is ready and not cordoned', () => {
    const room = nodeRoomOf(withoutBallast(node()))
    expect(room).toEqual({
      ...{ name: 'n', labels: { zone: 'b' }, taints: [{ key: 'gpu', effect: 'NoSchedule' }] },
      ...{ allocatable: { cpu: 2_000, memory: 1_024_000 }, isSchedulable: true },
    })
    expect(nodeRoomOf(withoutBallast(node({ unschedulable: true }))).isSchedulable).toBe(false)
    expect(nodeRoomOf(withoutBallast(node({}, 'Unknown'))).isSchedulable).toBe(false)
  })
})
