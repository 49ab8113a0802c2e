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
  renamed,
  replace,
} from './case.ts'
import { allComponents, everything } from './component-cases.ts'

/** Other namespaces. */
export const placeCases: readonly Case[] = [
  {
    title: 'another namespace of the operator',
    namespace: 'backups',
    more: patches(patch(agent, ...args('--operator-namespace=backups'))),
    adjust: renamed('backups', 'understudy-agents'),
  },
  {
    title: 'another namespace of the agents',
    values: { agents: { namespace: 'nodes-of-ours' } },
    more: patches(
      patch(operator, ...args('--agent-namespace=nodes-of-ours')),
      patch(agent, ...args('--namespace=nodes-of-ours')),
    ),
    adjust: renamed('understudy-system', 'nodes-of-ours'),
  },
  {
    title: 'namespaces that look like numbers, with everything',
    namespace: '123',
    values: {
      ...everything,
      ...{ agents: { namespace: '456', priorityClass: 'system-with-quota' }, stateStore: { redis: true } },
    },
    resources: ['redis'],
    components: [...allComponents, 'critical-pods-quota'],
    more: patches(
      patch(operator, ...args('--agent-namespace=456')),
      patch(agent, ...args('--namespace=456', '--operator-namespace=123')),
    ),
    adjust: renamed('123', '456'),
  },
]

const digest = (digit: string) => `sha256:${digit.repeat(64)}`
const images = (part: (name: string) => object) => ({
  images: ['operator', 'agent', 'redis'].map(name => ({ name: `understudy.invalid/${name}`, ...part(name) })),
})
const waker = (image: string) =>
  patches(patch(operator, replace(`${container}/args/2`, `--waker-image=${image}`)))

/** Other images. */
export const imageCases: readonly Case[] = [
  {
    title: 'a registry',
    values: { images: { registry: 'registry.example:5000/understudy/' }, stateStore: { redis: true } },
    resources: ['redis'],
    more: {
      ...images(name => ({ newName: `registry.example:5000/understudy/${name}` })),
      ...waker('registry.example:5000/understudy/waker:0.1.0'),
    },
  },
  {
    title: 'images by their digests',
    values: {
      images: {
        registry: 'registry.example',
        operator: { digest: digest('a') },
        agent: { repository: 'team/agent', digest: digest('b') },
        waker: { digest: digest('c') },
      },
    },
    more: {
      images: [
        {
          name: 'understudy.invalid/operator',
          newName: 'registry.example/operator',
          digest: digest('a'),
        },
        {
          name: 'understudy.invalid/agent',
          newName: 'registry.example/team/agent',
          digest: digest('b'),
        },
      ],
      ...waker(`registry.example/waker@${digest('c')}`),
    },
  },
  {
    title: 'other tags',
    values: { images: { operator: { tag: '9.9.9' }, waker: { tag: '9.9.8' }, agent: { tag: '9.9.7' } } },
    more: {
      images: [
        { name: 'understudy.invalid/operator', newTag: '9.9.9' },
        { name: 'understudy.invalid/agent', newTag: '9.9.7' },
      ],
      ...waker('understudy.invalid/waker:9.9.8'),
    },
  },
  {
    title: 'a private registry',
    values: { images: { pullPolicy: 'Always', pullSecrets: ['pull', 'more'] } },
    more: patches(
      ...[operator, agent].map(target =>
        patch(
          target,
          replace(`${container}/imagePullPolicy`, 'Always'),
          add(`${pod}/imagePullSecrets`, [{ name: 'pull' }, { name: 'more' }]),
        ),
      ),
    ),
  },
]
