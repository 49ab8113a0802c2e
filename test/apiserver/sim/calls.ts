/**
 * Lists of calls as operator, agents, kubelets and schedulers make them.
 *
 * Long because it is a list of calls.
 */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import { leases, pods, type Resource } from '../../../src/kube/resources.ts'
import type { Watched } from './told.ts'
import type { Call, Seen, Step } from './worlds.ts'

type Kind = Resource<KubeObject>
type Json = Readonly<Record<string, unknown>>

const kinds: Readonly<Record<'pods' | 'leases' | 'sets', Kind>> = {
  pods,
  leases,
  sets: backupPodSets,
}

const pod = (name: string, more: Json = {}, spec: Json = {}): Json => ({
  metadata: { name, labels: { [labels.set]: 'web', [labels.type]: 'hotbackup' }, ...more },
  spec: { terminationGracePeriodSeconds: 6, containers: [{ name: 'app', image: 'web:1' }], ...spec },
})
const onNode = (name: string, more: Json = {}) => pod(name, more, { nodeName: 'n1' })
const lease = (name: string, more: Json = {}): Json => ({
  metadata: { name, labels: { [labels.set]: 'web' }, annotations: { a: '1', b: '' }, ...more },
  spec: { holderIdentity: 'one', leaseTransitions: 1 },
})
const set = (name: string, more: Json = {}): Json => ({
  apiVersion: 'backup.example.com/v1alpha1',
  kind: 'BackupPodSet',
  metadata: { name },
  spec: {
    ...{ replicas: 1, hotBackups: 1, coldBackups: 0 },
    template: { spec: { containers: [{ name: 'app', image: 'web:1' }] } },
  },
  ...more,
})
const status = (replicas: number): Json => ({ observedGeneration: 1, replicas, conditions: [] })
const condition = (type: string, value: string, reason?: string): Json => ({
  ...{ type, status: value, lastTransitionTime: '2030-01-01T00:00:00Z' },
  ...(reason === undefined ? {} : { reason }),
})

const then = (step: string, call: Call | ((seen: Seen) => Call)): Step => ({
  step,
  call: typeof call === 'function' ? call : () => call,
})
const create = (step: string, of: Kind, body: Json) => then(step, { do: 'create', of, body })
const get = (step: string, of: Kind, name: string) => then(step, { do: 'get', of, name })
const list = (step: string, of: Kind, query = {}) => then(step, { do: 'list', of, query })
const merge = (step: string, of: Kind, name: string, body: Json | ((seen: Seen) => Json), sub?: 'status') =>
  then(step, seen => ({
    ...{ do: 'patch', of, name },
    patch: { type: 'merge', body: typeof body === 'function' ? body(seen) : body },
    ...(sub && { sub }),
  }))
const strategic = (step: string, name: string, body: Json | ((seen: Seen) => Json), sub?: 'status') =>
  then(step, seen => ({
    ...{ do: 'patch', of: kinds.pods, name },
    patch: { type: 'strategic', body: typeof body === 'function' ? body(seen) : body },
    ...(sub && { sub }),
  }))
const replace = (step: string, of: Kind, name: string, body: (seen: Seen) => Json, sub?: 'status') =>
  then(step, seen => ({ ...{ do: 'replace', of, name, body: body(seen) }, ...(sub && { sub }) }))
const remove = (step: string, of: Kind, name: string, query: Json | ((seen: Seen) => Json) = {}) =>
  then(step, seen => ({ do: 'delete', of, name, query: typeof query === 'function' ? query(seen) : query }))

const versionOf = (seen: Seen, step: string) => seen.of(step).metadata.resourceVersion
const uidOf = (seen: Seen, step: string) => seen.of(step).metadata.uid
const other = '00000000-0000-4000-8000-ffffffffffff'

export const allPods: Watched = { name: 'pods', of: kinds.pods, last: onNode('last-pod') }
export const allLeases: Watched = { name: 'leases', of: kinds.leases, last: lease('last-lease') }
export const allSets: Watched = { name: 'sets', of: kinds.sets, last: set('last-set') }

export const lists: readonly { what: string; steps: readonly Step[]; watches: readonly Watched[] }[] = [
  {
    what: 'the life of a Lease',
    watches: [allLeases],
    steps: [
      get('not there', kinds.leases, 'web-0'),
      create('made', kinds.leases, lease('web-0')),
      create('made twice', kinds.leases, lease('web-0')),
      merge('written', kinds.leases, 'web-0', seen => ({
        metadata: { resourceVersion: versionOf(seen, 'made'), annotations: { a: '2' } },
        spec: { leaseTransitions: 2 },
      })),
      merge('written by who is late', kinds.leases, 'web-0', seen => ({
        metadata: { resourceVersion: versionOf(seen, 'made') },
        spec: { leaseTransitions: 9 },
      })),
      merge('nothing new', kinds.leases, 'web-0', { spec: { leaseTransitions: 2 } }),
      merge('an annotation is taken off', kinds.leases, 'web-0', { metadata: { annotations: { b: null } } }),
      replace('replaced', kinds.leases, 'web-0', seen => ({
        ...lease('web-0', { resourceVersion: versionOf(seen, 'an annotation is taken off') }),
        spec: { holderIdentity: 'two' },
      })),
      replace('replaced by who is late', kinds.leases, 'web-0', seen =>
        lease('web-0', { resourceVersion: versionOf(seen, 'made') }),
      ),
      replace('replaced as another one', kinds.leases, 'web-0', seen =>
        lease('web-0', { resourceVersion: versionOf(seen, 'replaced'), uid: other }),
      ),
      replace('replaced without a version', kinds.leases, 'web-0', () => lease('web-0')),
      remove('deleted as another one', kinds.leases, 'web-0', { uid: other }),
      remove('deleted by who is late', kinds.leases, 'web-0', seen => ({
        resourceVersion: versionOf(seen, 'made'),
      })),
      remove('deleted', kinds.leases, 'web-0', seen => ({ uid: uidOf(seen, 'made') })),
      remove('deleted twice', kinds.leases, 'web-0'),
      merge('written when it is gone', kinds.leases, 'web-0', { spec: { leaseTransitions: 3 } }),
      create('made again', kinds.leases, lease('web-0')),
      merge('written to the one before it', kinds.leases, 'web-0', seen => ({
        metadata: { uid: uidOf(seen, 'made') },
        spec: { leaseTransitions: 3 },
      })),
    ],
  },
  {
    what: 'spec and status of a set',
    watches: [allSets],
    steps: [
      create('made', kinds.sets, set('web', { status: status(7) })),
      merge('its status', kinds.sets, 'web', { status: status(1) }, 'status'),
      merge(
        'its status, and by the way its spec',
        kinds.sets,
        'web',
        { spec: { replicas: 5 }, status: status(2) },
        'status',
      ),
      merge('its spec, and by the way its status', kinds.sets, 'web', {
        spec: { replicas: 3 },
        status: status(9),
      }),
      merge('nothing new', kinds.sets, 'web', { spec: { replicas: 3 } }),
      replace(
        'its status as a whole',
        kinds.sets,
        'web',
        seen => ({ ...set('web'), metadata: seen.of('nothing new').metadata, status: status(4) }),
        'status',
      ),
      replace(
        'its status by who is late',
        kinds.sets,
        'web',
        seen => ({ ...set('web'), metadata: seen.of('made').metadata, status: status(5) }),
        'status',
      ),
      merge('a label', kinds.sets, 'web', { metadata: { labels: { of: 'me' } } }),
      remove('deleted', kinds.sets, 'web', seen => ({ uid: uidOf(seen, 'made') })),
      create('made again', kinds.sets, set('web')),
    ],
  },
  {
    what: 'the conditions of a pod',
    watches: [allPods],
    steps: [
      create('made', kinds.pods, onNode('a')),
      strategic(
        'of the kubelet',
        'a',
        seen => ({
          metadata: { uid: uidOf(seen, 'made') },
          status: {
            phase: 'Running',
            podIP: '10.0.0.1',
            conditions: [condition('Ready', 'False'), condition('Initialized', 'True')],
          },
        }),
        'status',
      ),
      strategic(
        'of an agent',
        'a',
        { status: { conditions: [condition('example.com/serving', 'True', 'Serving')] } },
        'status',
      ),
      strategic(
        'of an agent, with an annotation and a label',
        'a',
        {
          metadata: { annotations: { note: 'one' }, labels: { of: 'me' }, finalizers: ['example.com/x'] },
          status: { conditions: [condition('example.com/serving', 'False', 'Died')] },
        },
        'status',
      ),
      strategic(
        'of an agent, without the annotation',
        'a',
        {
          metadata: { annotations: { note: null } },
          status: { conditions: [condition('example.com/serving', 'True', 'Serving')] },
        },
        'status',
      ),
      strategic(
        'of the kubelet again',
        'a',
        { status: { conditions: [condition('Ready', 'True')] } },
        'status',
      ),
      strategic('nothing new', 'a', { status: { conditions: [condition('Ready', 'True')] } }, 'status'),
      strategic(
        'containers',
        'a',
        {
          status: {
            containerStatuses: [
              {
                name: 'app',
                image: 'web:1',
                imageID: 'sha256:1',
                ready: true,
                restartCount: 0,
                ...{ state: { running: { startedAt: '2030-01-01T00:00:00Z' } }, lastState: {} },
                containerID: 'containerd://1',
              },
            ],
          },
        },
        'status',
      ),
      strategic(
        'a container in its place',
        'a',
        {
          status: {
            containerStatuses: [
              {
                name: 'app',
                image: 'web:1',
                imageID: 'sha256:1',
                ready: false,
                restartCount: 1,
                state: { waiting: { reason: 'Again' } },
                lastState: {},
              },
            ],
          },
        },
        'status',
      ),
      strategic('of another pod', 'a', { metadata: { uid: other }, status: { phase: 'Failed' } }, 'status'),
      merge('a label and an annotation', kinds.pods, 'a', {
        metadata: { labels: { [labels.type]: 'primary' }, annotations: { x: 'y' } },
      }),
      merge('by who is late', kinds.pods, 'a', seen => ({
        metadata: { resourceVersion: versionOf(seen, 'made'), labels: { [labels.type]: 'retired' } },
      })),
      merge('of another pod again', kinds.pods, 'a', {
        metadata: { uid: other, labels: { [labels.type]: 'retired' } },
      }),
      merge('a status by the wrong door', kinds.pods, 'a', { status: { phase: 'Failed' } }),
    ],
  },
  {
    what: 'deletions of pods',
    watches: [allPods],
    steps: [
      create('a, nowhere yet', kinds.pods, pod('a')),
      remove('a goes at once', kinds.pods, 'a'),
      create('b, on a node', kinds.pods, onNode('b')),
      remove('another b', kinds.pods, 'b', { uid: other }),
      remove('b is told to go', kinds.pods, 'b', seen => ({ uid: uidOf(seen, 'b, on a node') })),
      get('b goes', kinds.pods, 'b'),
      remove('b is told again', kinds.pods, 'b'),
      get('b still goes', kinds.pods, 'b'),
      remove('b is to be quicker', kinds.pods, 'b', { gracePeriodSeconds: 2 }),
      get('b is quicker', kinds.pods, 'b'),
      remove('b is to be slower', kinds.pods, 'b', { gracePeriodSeconds: 60 }),
      get('b is not slower', kinds.pods, 'b'),
      create('b is still there', kinds.pods, onNode('b')),
      merge('b is written', kinds.pods, 'b', { metadata: { annotations: { x: 'y' } } }),
      remove('b has ended', kinds.pods, 'b', seen => ({
        uid: uidOf(seen, 'b, on a node'),
        gracePeriodSeconds: 0,
      })),
      get('b is gone', kinds.pods, 'b'),
      create('c, on a node', kinds.pods, onNode('c')),
      remove('c by force', kinds.pods, 'c', { gracePeriodSeconds: 0 }),
      create('d, on a node', kinds.pods, onNode('d')),
      strategic('d has ended', 'd', { status: { phase: 'Succeeded' } }, 'status'),
      remove('d goes at once', kinds.pods, 'd'),
      get('d is gone', kinds.pods, 'd'),
    ],
  },
  {
    what: 'finalizers and owners',
    watches: [allLeases],
    steps: [
      create('held', kinds.leases, lease('a', { finalizers: ['example.com/held'] })),
      remove('told to go', kinds.leases, 'a'),
      get('goes', kinds.leases, 'a'),
      merge('let go', kinds.leases, 'a', { metadata: { finalizers: null } }),
      get('gone', kinds.leases, 'a'),
      create(
        'owned',
        kinds.leases,
        lease('b', {
          ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: other, controller: true }],
        }),
      ),
      merge('owned by nobody', kinds.leases, 'b', { metadata: { ownerReferences: null } }),
    ],
  },
  {
    what: 'lists and watches by label and node',
    watches: [
      { ...allPods, name: 'on n1', query: { fieldSelector: 'spec.nodeName=n1' } },
      { ...allPods, name: 'with a set', query: { labelSelector: labels.set } },
      {
        ...allPods,
        name: 'of web on n1',
        query: { labelSelector: `${labels.set}=web`, fieldSelector: 'spec.nodeName=n1' },
      },
    ],
    steps: [
      create('z', kinds.pods, onNode('z')),
      create('b', kinds.pods, pod('b')),
      create('c', kinds.pods, pod('c', { labels: { app: 'c' } }, { nodeName: 'n1' })),
      create('a', kinds.pods, pod('a', { labels: { [labels.set]: 'db' } }, { nodeName: 'n2' })),
      list('all', kinds.pods),
      list('with a set', kinds.pods, { labelSelector: labels.set }),
      list('of web', kinds.pods, { labelSelector: `${labels.set}=web` }),
      list('on n1', kinds.pods, { fieldSelector: 'spec.nodeName=n1' }),
      list('of web on n1', kinds.pods, {
        labelSelector: `${labels.set}=web`,
        fieldSelector: 'spec.nodeName=n1',
      }),
      merge('z leaves the set', kinds.pods, 'z', { metadata: { labels: { [labels.set]: null } } }),
      merge('z is written outside of it', kinds.pods, 'z', { metadata: { annotations: { x: 'y' } } }),
      merge('z comes back', kinds.pods, 'z', { metadata: { labels: { [labels.set]: 'web' } } }),
      merge("z becomes another set's", kinds.pods, 'z', { metadata: { labels: { [labels.set]: 'db' } } }),
      merge('c is taken in', kinds.pods, 'c', { metadata: { labels: { [labels.set]: 'web' } } }),
      remove('c ends', kinds.pods, 'c', { gracePeriodSeconds: 0 }),
      list('of web at last', kinds.pods, { labelSelector: `${labels.set}=web` }),
    ],
  },
]
