/** Pods that Kubernetes itself takes from their nodes: by the kubelet, by the scheduler, and before they have begun. */
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../../src/kube/object.ts'
import { type Pod, pods, type Resource } from '../../../src/kube/resources.ts'
import { numberIn } from '../../../zoo/http-specimen.ts'
import { addressOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes } from '../lib/cluster.ts'
import { countAt, countOn, create, peek, podNamed, saved } from '../lib/migrating-pods.ts'
import { createWorld, restartsOf, type World } from '../lib/world.ts'

const image = { image: 'understudy.invalid/zoo:0.1.0', imagePullPolicy: 'IfNotPresent' } as const
const server = {
  ...{ name: 'app', ...image, command: ['/usr/bin/python3', '/zoo/server.py'] },
  ports: [{ containerPort: 8080 }],
  readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
}
const templateOf = (app: string, container: object = {}, pod: object = {}) => ({
  metadata: { labels: { app } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 10,
    containers: [{ ...server, ...container }],
    ...pod,
  },
})

const priorityClasses: Resource<KubeObject & { readonly value: number }> = Object.freeze({
  ...{ group: 'scheduling.k8s.io', version: 'v1', plural: 'priorityclasses' },
  ...{ kind: 'PriorityClass', namespaced: false },
})

const nodeOf = ({ spec }: Pod): string => spec?.nodeName ?? ''

/** Waits for a move after a loss: the set tells it after the pod serves. */
const movedTo = (world: World, name: string, activePod: string) =>
  eventually(async () => {
    const { status } = await saved(world, name, activePod)
    expect(status?.lastMove).toMatchObject({ from: `${name}-0`, to: activePod })
    return status?.lastMove
  })

/** Runs a pod on this node that needs the place of another one. */
async function displace({ api, namespace }: World, node: string, cpu: string): Promise<void> {
  const name = `urgent-${namespace}`
  await api.create(priorityClasses, { metadata: { name }, value: 1_000 })
  try {
    const { spec } = templateOf('urgent', { resources: { requests: { cpu } } })
    const placed = { nodeSelector: { 'kubernetes.io/hostname': node }, priorityClassName: name }
    await api.create(pods, { metadata: { name: 'urgent' }, spec: { ...spec, ...placed } }, { namespace })
    await eventually(async () => {
      const { status } = await api.get(pods, { namespace, name: 'urgent' })
      expect(status?.phase).toBe('Running')
    }, 120_000)
    await api.delete(pods, { namespace, name: 'urgent' })
  } finally {
    await api.delete(priorityClasses, { name })
  }
}

describe.skipIf(needsNodes())('MigratingPods that are evicted', () => {
  it('MP-31: by the kubelet, it continues elsewhere from the last saved state, whose age is told; preempted, it loses nothing', async () => {
    await using world = await createWorld()
    const { namespace } = world
    const cpu = '1200m'
    const scratch = { volumes: [{ name: 'scratch', emptyDir: { sizeLimit: '1Mi' } }] }
    const mounted = { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] }
    await Promise.all([
      create(world, 'pressed', {
        template: templateOf('pressed', mounted, scratch),
        checkpoint: { interval: '10m' },
      }),
      create(world, 'displaced', {
        template: templateOf('displaced', { resources: { requests: { cpu } } }),
        checkpoint: { interval: '10m' },
      }),
    ])
    await Promise.all(['pressed', 'displaced'].map(name => saved(world, name, `${name}-0`)))

    const pressed = await podNamed(world, 'pressed-0')
    // On a busy machine one answer may take longer than a client waits.
    await eventually(() => countAt(addressOf(pressed)))
    // Only the kubelet sees it: the next save would be much later.
    await kubectl(
      ...['exec', '-n', namespace, 'pressed-0', '--'],
      ...['sh', '-c', 'head -c 3000000 /dev/zero > /scratch/large'],
    )

    const displaced = await podNamed(world, 'displaced-0')
    const stop = new AbortController()
    const client = countOn(world, 'displaced', stop.signal)
    try {
      await eventually(async () =>
        expect(numberIn(await peek(addressOf(displaced)), 'count')).toBeGreaterThan(20),
      )
      await displace(world, nodeOf(displaced), cpu)
      expect((await movedTo(world, 'displaced', 'displaced-1'))?.reason).toBe('PodDeleted')
    } finally {
      stop.abort()
    }
    const { last, wrong } = await client
    expect(wrong).toBeUndefined()
    expect(last).toBeGreaterThan(10)
    const next = await podNamed(world, 'displaced-1')
    expect(nodeOf(next)).not.toBe(nodeOf(displaced))
    expect(numberIn(await peek(addressOf(next)), 'count')).toBeGreaterThanOrEqual(last)

    expect((await movedTo(world, 'pressed', 'pressed-1'))?.stateAge).toBeGreaterThan(0)
    const there = await podNamed(world, 'pressed-1')
    expect(nodeOf(there)).not.toBe(nodeOf(pressed))
    // Its memory is that of the save, without what it counted after that.
    expect(numberIn(await peek(addressOf(there)), 'count')).toBe(0)
    expect([restartsOf(next), restartsOf(there)]).toEqual([0, 0])
  })

  it('MP-19: while its init containers run, its drain ends at once, nothing is saved, and the next pod starts as usual', async () => {
    await using world = await createWorld()
    const { namespace } = world
    const first = {
      ...{ name: 'first', ...image },
      command: ['/usr/bin/sh', '-c', 'case $(hostname) in *-0) sleep 3600;; esac'],
    }
    await create(world, 'slow', { template: templateOf('slow', {}, { initContainers: [first] }) })
    const before = await eventually(async () => {
      const pod = await podNamed(world, 'slow-0')
      expect(pod.status?.initContainerStatuses?.[0]?.state?.running).toBeDefined()
      return pod
    })
    const node = nodeOf(before)
    try {
      await kubectl('drain', node, '--pod-selector=app=slow', '--timeout=120s')
    } finally {
      await kubectl('uncordon', node)
    }
    expect(await movedTo(world, 'slow', 'slow-1')).not.toHaveProperty('stateAge')
    const next = await podNamed(world, 'slow-1')
    expect(next.spec?.initContainers?.map(({ name }) => name)).toEqual(['first'])
    expect(next.status?.initContainerStatuses?.[0]?.state?.terminated?.exitCode).toBe(0)
    expect(numberIn(await peek(addressOf(next)), 'count')).toBe(0)
    const events = await kubectl(
      'get',
      'events',
      '-n',
      namespace,
      '--field-selector=involvedObject.name=slow-0',
    )
    expect(events).not.toMatch(/Checkpoint|Migration|OnStage/)
  })
})
