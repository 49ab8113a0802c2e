import {
  add,
  agent,
  args,
  type Case,
  container,
  operator,
  patch,
  patches,
  pod,
  replace,
  without,
} from './case.ts'

/** Fields of the workloads. */
export const workloadCases: readonly Case[] = [
  {
    title: 'three replicas',
    values: { operator: { replicas: 3 } },
    more: { replicas: [{ name: operator.name, count: 3 }] },
  },
  {
    title: 'one replica, which no budget keeps on its node',
    values: { operator: { replicas: 1 } },
    more: { replicas: [{ name: operator.name, count: 1 }] },
    adjust: without(({ kind }) => kind === 'PodDisruptionBudget'),
  },
  {
    title: 'resources, of which the others stay',
    values: {
      operator: { resources: { limits: { memory: '1Gi' } } },
      agents: { resources: { limits: { memory: '6Gi' }, requests: { cpu: 1 } } },
    },
    more: patches(
      patch(operator, replace(`${container}/resources/limits/memory`, '1Gi')),
      patch(
        agent,
        replace(`${container}/resources/limits/memory`, '6Gi'),
        replace(`${container}/resources/requests/cpu`, 1),
      ),
    ),
  },
  {
    title: 'arguments and levels of logs',
    values: {
      operator: { logLevel: 'debug', extraArgs: ['--workers=3', '--identity=a: "b" {{c}}'] },
      agents: { logLevel: 'warn', extraArgs: ['--record-writes'] },
    },
    more: patches(
      patch(operator, ...args('--log-level=debug', '--workers=3', '--identity=a: "b" {{c}}')),
      patch(agent, ...args('--log-level=warn', '--record-writes')),
    ),
  },
  {
    title: 'nodes and annotations of pods',
    values: {
      operator: { nodeSelector: { 'example.com/pool': 'true' }, podAnnotations: { 'example.com/a': '1' } },
      agents: { nodeSelector: { pool: 'memory' }, podAnnotations: { 'example.com/b': '2' } },
    },
    more: patches(
      patch(
        operator,
        add(`${pod}/nodeSelector`, { 'example.com/pool': 'true' }),
        add('/spec/template/metadata/annotations/example.com~1a', '1'),
      ),
      patch(
        agent,
        add(`${pod}/nodeSelector/pool`, 'memory'),
        add('/spec/template/metadata/annotations/example.com~1b', '2'),
      ),
    ),
  },
  {
    title: 'a Redis of the user, without a password',
    values: { stateStore: { url: 'redis://store.example/2', passwordSecret: '' } },
    more: patches(
      patch(
        operator,
        add(`${container}/env/-`, { name: 'UNDERSTUDY_STATE_STORE', value: 'redis://store.example/2' }),
      ),
    ),
  },
  {
    title: 'a Redis of the user, with a password',
    values: { stateStore: { url: 'rediss://store.example', passwordSecret: 'mine' } },
    more: patches(
      patch(
        operator,
        add(`${container}/env/-`, { name: 'UNDERSTUDY_STATE_STORE', value: 'rediss://store.example' }),
        add(`${container}/env/-`, {
          name: 'UNDERSTUDY_STATE_STORE_PASSWORD',
          valueFrom: { secretKeyRef: { name: 'mine', key: 'password' } },
        }),
      ),
    ),
  },
  {
    title: 'scrapes from another namespace',
    values: { monitoring: { namespace: 'observability' } },
    more: patches(
      patch(
        { kind: 'NetworkPolicy', name: 'understudy-operator' },
        replace(
          '/spec/ingress/0/from/0/namespaceSelector/matchLabels/kubernetes.io~1metadata.name',
          'observability',
        ),
      ),
    ),
  },
]
