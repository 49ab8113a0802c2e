import { expect, test } from 'vitest'
import type { PodTemplate } from '../api/backuppodset.ts'
import { restoreHash } from './restore-hash.ts'

const template = {
  metadata: { labels: { app: 'carts' } },
  spec: {
    volumes: [
      { name: 'cache', emptyDir: {} },
      { name: 'unused', emptyDir: {} },
    ],
    containers: [
      {
        name: 'app',
        image: 'carts:1',
        args: ['--port', '80'],
        env: [{ name: 'A', value: '1' }],
        volumeMounts: [{ name: 'cache', mountPath: '/cache' }],
        securityContext: { runAsUser: 1000 },
      },
    ],
  },
} satisfies PodTemplate

const [app] = template.spec.containers
const withApp = (change: object): PodTemplate => ({
  ...template,
  spec: { ...template.spec, containers: [{ ...app, name: 'app', ...change }] },
})
const withSpec = (change: object): PodTemplate => ({ ...template, spec: { ...template.spec, ...change } })

test('is fixed by value: generations outlive the agent that made them', () => {
  expect(restoreHash(template)).toBe('8c3d3bed5af4c2b4')
})

test.each([
  ['environment', withApp({ env: [] })],
  [
    'resources and probes',
    withApp({ resources: { limits: { cpu: '1' } }, livenessProbe: { tcpSocket: { port: 1 } } }),
  ],
  ['labels', { ...template, metadata: { labels: { app: 'other' } } }],
  ['a volume that nobody mounts', withSpec({ volumes: [template.spec.volumes[0]] })],
  ['an empty list', withApp({ command: [] })],
])('memory goes on with another %s', (_, other) => {
  expect(restoreHash(other)).toBe(restoreHash(template))
})

test.each([
  ['image', withApp({ image: 'carts:2' })],
  ['command', withApp({ command: ['/bin/carts'] })],
  ['arguments', withApp({ args: ['--port', '81'] })],
  ['mount', withApp({ volumeMounts: [{ name: 'cache', mountPath: '/data' }] })],
  ['volume behind a mount', withSpec({ volumes: [{ name: 'cache', emptyDir: { medium: 'Memory' } }] })],
  ['user', withApp({ securityContext: { runAsUser: 1001 } })],
  ['security context of the pod', withSpec({ securityContext: { runAsNonRoot: true } })],
  ['container', withApp({ name: 'other' })],
])('memory does not go on with another %s', (_, other) => {
  expect(restoreHash(other)).not.toBe(restoreHash(template))
})
