/** One move of a pod that has everything, as its clients, its files and its nodes see it. */
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { backupPodSets, type PodTemplate } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { migrations, outcomeOf, phaseTime } from '../../../src/api/migration.ts'
import { configMaps, type Pod, pods, secrets, services } from '../../../src/kube/resources.ts'
import { answerOf, numberIn } from '../../../zoo/http-specimen.ts'
import { addressOf, counter, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { discovery } from '../lib/endpoints.ts'
import { countAt, create, podNamed, saved } from '../lib/migrating-pods.ts'
import { move, reached } from '../lib/moving.ts'
import { startTraffic } from '../lib/traffic.ts'
import { createWorld, restartsOf, type World } from '../lib/world.ts'

const image = { image: 'understudy.invalid/zoo:0.1.0', imagePullPolicy: 'IfNotPresent' } as const
const server = (name: string, port: number, notebook: string) => ({
  ...{ name, ...image, command: ['/usr/bin/python3', '/zoo/server.py'] },
  env: [
    { name: 'PORT', value: `${port}` },
    { name: 'NOTEBOOK', value: notebook },
  ],
  ports: [{ containerPort: port }],
  readinessProbe: { httpGet: { path: '/healthz', port }, periodSeconds: 1 },
})

/** Two servers that note each count in a file: one in an emptyDir, one in its own layer. */
const templateOf = (witness: string, mark: string, memory: string): PodTemplate => ({
  metadata: { labels: { app: 'whole' }, annotations: { mark } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 5,
    initContainers: [
      {
        ...{ name: 'first', ...image },
        command: ['/usr/bin/sh', '-c', `wget -q -O /data/first http://${witness}:8080/`],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    containers: [
      {
        ...server('app', 8080, '/data/notebook'),
        resources: { limits: { memory } },
        volumeMounts: [
          { name: 'data', mountPath: '/data' },
          ...['about', 'config', 'secret'].map(name => ({ name, mountPath: `/${name}`, readOnly: true })),
        ],
      },
      server('side', 8081, '/tmp/notebook'),
    ],
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'config', configMap: { name: 'words' } },
      { name: 'secret', secret: { secretName: 'words' } },
      {
        name: 'about',
        downwardAPI: {
          items: [
            { path: 'name', fieldRef: { fieldPath: 'metadata.name' } },
            { path: 'mark', fieldRef: { fieldPath: "metadata.annotations['mark']" } },
          ],
        },
      },
    ],
  },
})

const textAt = async (pod: Pod, path: string) =>
  String((await answerOf(addressOf(pod), 8080, `/cat${path}`))['text'])

/** A Service of each type that hides the address of a pod. */
async function makeServices({ api, namespace }: World): Promise<readonly string[]> {
  const made = async (type: 'ClusterIP' | 'NodePort' | 'LoadBalancer') =>
    api.create(
      services,
      {
        metadata: { name: type.toLowerCase(), namespace },
        spec: { type, selector: { app: 'whole' }, ports: [{ port: 80, targetPort: 8080 }] },
      },
      { namespace },
    )
  const inner = await made('ClusterIP')
  const port = await made('NodePort')
  const outer = await made('LoadBalancer')
  const [node] = (await playground()).plan.nodes
  // Written in the place of a cloud's controller: kube-proxy then leads the address to the pod.
  const ip = '192.0.2.80'
  const status = { loadBalancer: { ingress: [{ ip }] } }
  await kubectl(
    ...['patch', 'service', outer.metadata.name, '-n', namespace, '--subresource=status'],
    ...['--type=merge', '-p', JSON.stringify({ status })],
  )
  return [
    `http://${inner.spec?.clusterIP}/`,
    `http://${node?.address}:${port.spec?.ports?.[0]?.nodePort}/`,
    `http://${ip}/`,
  ]
}

/** Counts wherever a pod answers, the source and the target alike, until the signal fires. Returns all numbers in order. */
async function countEverywhere({ api, namespace }: World, port: number, signal: AbortSignal) {
  const numbers: number[] = []
  while (!signal.aborted) {
    const { items } = await api.list(pods, { namespace, labelSelector: 'app=whole' })
    for (const { status } of items) {
      if (status?.podIP === undefined) continue
      await countAt(status.podIP, port).then(
        value => numbers.push(value),
        () => undefined,
      )
    }
    await pause(5)
  }
  return numbers
}

/** Looks again and again at the source and the endpoints, until the signal fires. */
async function watch(world: World, source: Pod, signal: AbortSignal) {
  const endpoints: string[] = []
  const restarts = new Set<number>()
  while (!signal.aborted) {
    const ready = (await discovery(world, 'primary')).join()
    if (ready !== endpoints.at(-1)) endpoints.push(ready)
    const { items } = await world.api.list(pods, { namespace: world.namespace })
    const now = items.find(({ metadata }) => metadata.uid === source.metadata.uid)
    const [lease] = await slotsOf({ ...world, name: 'whole' })
    // The Lease is read after the pod: a restart that is seen was before that.
    if (now !== undefined && lease?.holder.uid === source.metadata.uid) restarts.add(restartsOf(now))
    await pause(20)
  }
  return { endpoints, restarts: [...restarts] }
}

/** Opens connections that stay open, with a request that is never complete. */
async function idle(pod: Pod, many: number) {
  let open = 0
  for (let i = 0; i < many; i += 1) {
    const socket = connect({ host: addressOf(pod), port: 8080 })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open -= 1
    })
    await new Promise(resolve => socket.once('connect', resolve))
    socket.write('GET / HTTP/1.1\r\n')
    open += 1
  }
  return { open: () => open }
}

const increases = (numbers: readonly number[]) =>
  numbers.every((value, i) => i === 0 || value > (numbers[i - 1] ?? 0))

describe.skipIf(needsNodes())('a MigratingPod with everything', () => {
  it('MP-09 MP-11 MP-12 MP-13 MP-14 MP-15 MP-17 MP-18 MP-20 MP-21 MP-22 MP-27: moves as one', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    await api.create(pods, { metadata: { name: 'witness' }, spec: counter.template.spec }, { namespace })
    const witness = await eventually(async () => {
      const pod = await podNamed(world, 'witness')
      await counter.read(addressOf(pod))
      return pod
    })
    await api.create(configMaps, { metadata: { name: 'words' }, data: { word: 'open' } }, { namespace })
    await api.create(secrets, { metadata: { name: 'words' }, stringData: { word: 'hidden' } }, { namespace })
    await world.createService('primary', { app: 'whole', [labels.type]: 'primary' })
    const urls = await makeServices(world)
    const template = templateOf(addressOf(witness), 'before', '128Mi')
    await create(world, 'whole', { template })
    const { status } = await saved(world, 'whole', 'whole-0')
    const source = await podNamed(world, 'whole-0')
    const uid = source.metadata.uid
    const pids = await pidsOf(uid, 'python3')

    // MP-22: a move that is called off. MP-14: meanwhile the pod is saved, and runs on.
    await move(world, 'nowhere', { source: { name: 'whole-0' }, addedNodeSelector: { 'no.such/label': 'x' } })
    await reached(world, 'nowhere', 'Reserving')
    await api.delete(migrations, { namespace, name: 'nowhere' })
    await eventually(async () => {
      const now = await saved(world, 'whole', 'whole-0')
      expect(now.status?.migration).toBeUndefined()
      expect(now.status?.generation).toBeGreaterThan((status?.generation ?? 0) + 1)
    })
    expect(await pidsOf(uid, 'python3')).toEqual(pids)

    // MP-15: the target is to have this, and the source has not.
    const body = { spec: { template: templateOf(addressOf(witness), 'after', '192Mi') } }
    await api.patch(migratingPods, { namespace, name: 'whole' }, { type: 'merge', body })
    await eventually(async () => {
      const set = await api.get(backupPodSets, { namespace, name: 'whole' })
      expect(set.spec.template.metadata?.annotations?.['mark']).toBe('after')
    })

    const connections = await idle(source, 30)
    expect(connections.open()).toBe(30)
    const stop = new AbortController()
    const traffic = await Promise.all(urls.map(url => startTraffic(url, 100)))
    const clients = [8080, 8081].map(port => countEverywhere(world, port, stop.signal))
    const watched = watch(world, source, stop.signal)
    try {
      await eventually(() =>
        expect(traffic.map(({ answers }) => answers.some(({ count }) => count !== undefined))).toEqual([
          true,
          true,
          true,
        ]),
      )
      await move(world, 'there', { source: { name: 'whole-0' } })
      await eventually(async () => {
        const migration = await api.get(migrations, { namespace, name: 'there' })
        expect(outcomeOf(migration)?.reason, JSON.stringify(migration.status)).toBe('Moved')
      }, 120_000)
      await saved(world, 'whole', 'whole-1')
      // MP-21: the clients of each Service are served again.
      const from = traffic.map(({ answers }) => answers.length)
      await eventually(() => {
        for (const [i, { answers }] of traffic.entries())
          expect(
            answers.slice((from[i] ?? 0) + 10).filter(({ count }) => count !== undefined).length,
          ).toBeGreaterThan(5)
      })
    } finally {
      stop.abort()
    }
    const answers = await Promise.all(traffic.map(each => each.stop()))
    const [main = [], side = []] = await Promise.all(clients)
    const { endpoints, restarts } = await watched
    const target = await podNamed(world, 'whole-1')
    expect(target.spec?.nodeName).not.toBe(source.spec?.nodeName)

    // MP-12: two copies would give a number twice, and an app that the kubelet starts again would begin with 1. MP-11: each container continues with its own memory.
    const told = [...main, ...answers.flat().flatMap(({ count }) => count ?? [])]
    expect(new Set(told).size).toBe(told.length)
    for (const numbers of [main, side]) {
      expect(numbers.length).toBeGreaterThan(20)
      expect(increases(numbers)).toBe(true)
    }
    expect([restarts, restartsOf(target)]).toEqual([[0], 0])
    // MP-13: the Service follows, and not back. It may have both for a moment, while connections to the source lead to the target. Probes may fail.
    const led = endpoints.filter(ready => ready !== '' && ready !== 'whole-0,whole-1')
    expect(led.filter((ready, i) => ready !== led[i - 1])).toEqual(['whole-0', 'whole-1'])

    // MP-27: both files have a line for each count, and the memory has each number that a client got.
    for (const [port, numbers] of [
      [8080, told],
      [8081, side],
    ] as const) {
      const now = await answerOf(addressOf(target), port, '/peek')
      expect(numberIn(now, 'count')).toBeGreaterThanOrEqual(Math.max(...numbers))
      expect(now['noted']).toBe(now['count'])
    }

    // MP-09: the containers ran, with their images, before the source was stopped.
    const moved = await api.get(migrations, { namespace, name: 'there' })
    const stopped = Date.parse(phaseTime(moved.status ?? {}, 'Stopping') ?? '')
    const started = (target.status?.containerStatuses ?? []).map(({ state }) =>
      Date.parse(String(state?.running?.startedAt)),
    )
    expect(started).toHaveLength(2)
    expect(Math.max(...started)).toBeLessThanOrEqual(stopped)

    // MP-15: the restored containers have the spec of the target.
    expect(target.metadata.annotations?.['mark']).toBe('after')
    expect([await textAt(target, '/about/name'), await textAt(target, '/about/mark')]).toEqual([
      'whole-1',
      'after',
    ])
    const [pid] = await pidsOf(target.metadata.uid, 'python3')
    expect(pid).toBeDefined()
    expect(await memoryLimit(target)).toBe(192 * 1024 * 1024)

    // MP-20: what is mounted from the API is there. MP-18: the first container has run once, for the source.
    expect([await textAt(target, '/config/word'), await textAt(target, '/secret/word')]).toEqual([
      'open',
      'hidden',
    ])
    expect(await counter.read(addressOf(witness))).toBe(1)
    expect(await textAt(target, '/data/first')).toContain('"count":1')

    // MP-14: the last save has stopped the source for good. MP-17: its connections have ended.
    await eventually(async () => expect(await pidsOf(uid, 'python3')).toEqual([]))
    await eventually(() => expect(connections.open()).toBe(0))
  })
})

/** Returns the limit of memory of the cgroup in which the restored app is, by either version of cgroups. */
async function memoryLimit(pod: Pod): Promise<number> {
  const paths = ['/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/memory.max']
  for (const path of paths) {
    const text = await textAt(pod, path).catch(() => undefined)
    if (text !== undefined) return Number(text)
  }
  throw new Error('the container sees no limit of memory')
}
