/** The chart on real nodes: installed, upgraded and rolled back under load, and removed. Nothing of ours may stay on any node. */
import { describe, expect, it } from 'vitest'
import { deployOperator } from '../../../playground/deploy.ts'
import { stageLabel } from '../../../src/api/pod-contract.ts'
import { isReady } from '../../../src/kube/ready.ts'
import { nodes, pods } from '../../../src/kube/resources.ts'
import { createProgress } from '../../../src/terminal/progress.ts'
import {
  addressOf,
  agentPods,
  type CounterSet,
  count,
  counter,
  holderOf,
  killApp,
  promoted,
  readSlot,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { buildMs, openHelm } from '../../support/helm.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { cli } from '../lib/installation.ts'
import { leftovers } from '../lib/leftovers.ts'
import { containersOf, startLoad } from '../lib/load.ts'
import { openNodesRegistry } from '../lib/registry.ts'
import { alone, createWorld, replicas, type World } from '../lib/world.ts'

const release = ['understudy', '--namespace', 'understudy-system'] as const
/** Of Helm itself. */
const patience = ['--wait', '--timeout', '300s'] as const
/** As many rollouts of everything as there are other words. */
const rollout = (word: string) => [
  ...['--set', `operator.podAnnotations.rollout=${word},agents.podAnnotations.rollout=${word}`],
]

async function useHelm() {
  const cluster = await playground()
  const { kubeconfigPath } = cluster
  await using opened = new AsyncDisposableStack()
  const tools = opened.use(await openHelm())
  const registry = opened.use(await openNodesRegistry(cluster, 'understudy'))
  const charts = `oci://${registry.address}/charts`
  const archive = await tools.packed()
  const { code, stderr } = await tools.helm('push', archive, charts, '--plain-http')
  expect([code, stderr]).toEqual([0, expect.anything()])
  const owned = opened.move()
  return {
    /** The chart, and where its images are. */
    chart: [
      ...[`${charts}/understudy`, '--plain-http'],
      ...['--set', `images.registry=${registry.address}/understudy`],
    ],
    run: (...args: readonly string[]) => tools.helm(...args, '--kubeconfig', kubeconfigPath),
    async killedWhen(happens: () => Promise<unknown>, ...args: readonly string[]) {
      const killer = new AbortController()
      const [end] = await Promise.all([
        tools.helmUntil(killer.signal, ...args, '--kubeconfig', kubeconfigPath),
        happens().finally(() => killer.abort()),
      ])
      expect(end.signal).toBe('SIGKILL')
    },
    async succeeds(...args: readonly string[]) {
      const { code, stderr } = await tools.helm(...args, '--kubeconfig', kubeconfigPath)
      expect([code, stderr]).toEqual([0, expect.anything()])
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Waits until all pods of operator and agents are of a rollout. */
const rolledOut = (world: World, word: string) =>
  eventually(async () => {
    const all = [...(await replicas(world)), ...(await agentPods(world.api))]
    expect(all.filter(pod => !isReady(pod) || pod.metadata.annotations?.['rollout'] !== word)).toEqual([])
  }, 300_000)

/** Helm is killed during an upgrade, and a later upgrade fails, because the agents' image is missing. */
async function interrupted(helm: Awaited<ReturnType<typeof useHelm>>, world: World) {
  const upgradeTo = (word: string) => ['upgrade', ...release, ...helm.chart, ...rollout(word)]
  const hasBegun = (word: string) =>
    eventually(async () => {
      const all = await agentPods(world.api)
      expect(all.map(({ metadata }) => metadata.annotations?.['rollout'])).toContain(word)
    }, 120_000)
  await helm.killedWhen(() => hasBegun('third'), ...upgradeTo('third'), ...patience)
  const refused = await helm.run(...upgradeTo('fourth'))
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('another operation')])
  await helm.succeeds('rollback', ...release, '2', ...patience)
  await rolledOut(world, 'second')
  const missing = ['--set', 'images.agent.tag=missing', '--wait', '--timeout', '20s']
  expect((await helm.run(...upgradeTo('fifth'), ...missing)).code).toBe(1)
  // One node after the other gets its agent, so the others still have theirs.
  const all = await agentPods(world.api)
  expect(all.filter(pod => !isReady(pod))).toHaveLength(1)
}

describe.skipIf(needsNodes())('a release of the chart', () => {
  it(
    'D19.swept comes from a registry with its images, loses no memory when it is upgraded under load, also by upgrades that are killed or fail, is rolled back, and leaves none when it is removed',
    async () => {
      const cluster = await playground()
      await using helm = await useHelm()
      await using world = await createWorld()
      await alone(world)
      const inside: CounterSet = { api: world.api, namespace: world.namespace, name: 'released' }
      try {
        const { exitCode, err } = await cli('uninstall')
        expect([exitCode, err]).toEqual([0, expect.anything()])
        await kubectl('delete', '-k', 'deploy/', '--wait', '--timeout=120s')
        await helm.succeeds(
          'install',
          ...release,
          ...helm.chart,
          '--create-namespace',
          ...patience,
          ...rollout('first'),
        )

        await eventually(async () => {
          const able = await world.api.list(nodes, { labelSelector: `${stageLabel}=ready` })
          expect(able.items).toHaveLength(cluster.nodes.length)
        }, 120_000)
        const set = await world.createSet('released', {
          ...{ replicas: 2, hotBackups: 2, template: counter.template },
          checkpoint: { interval: '1s' },
        })
        await eventually(async () => expect(await slotsOf(inside)).toHaveLength(2))
        await saved(inside)
        const expected = await count(inside, 5)
        await saved(inside)
        const [first, second] = await slotsOf(inside)
        if (first === undefined || second === undefined) throw new Error('a slot is gone')
        const load = startLoad(addressOf(await holderOf(inside, second)))

        const dead = await holderOf(inside, first)
        const before = await containersOf(set)
        const upgrade = helm.succeeds('upgrade', ...release, ...helm.chart, ...patience, ...rollout('second'))
        await killApp(dead)
        expect(await readSlot(inside, await promoted(inside, first))).toBe(expected[0])
        await upgrade
        await rolledOut(world, 'second')
        await interrupted(helm, world)
        await helm.succeeds('rollback', ...release, '1', ...patience)
        await rolledOut(world, 'first')

        // The agents of the last rollout save what the first ones kept.
        await saved(inside, ['Frozen', 'Staged', 'Cold'])
        const { last, failures } = await load.stop()
        expect(failures).toEqual([])
        expect(last).toBeGreaterThan((expected[1] ?? 0) + 50)
        const after = await containersOf(set)
        const others = [...before].filter(
          ([uid, containers]) => uid !== dead.metadata.uid && containers !== '',
        )
        expect(others.map(([uid]) => [uid, after.get(uid)])).toEqual(others)
        expect((await slotsOf(inside))[1]?.holder).toEqual(second.holder)

        const refused = await helm.run('uninstall', ...release, '--timeout', '300s')
        expect([refused.code, refused.stdout + refused.stderr]).toEqual([
          1,
          expect.stringContaining(`${world.namespace}/released`),
        ])
        await rolledOut(world, 'first')
        await kubectl('delete', 'bps', set.name, '--namespace', world.namespace)
        await eventually(async () => {
          const { items } = await world.api.list(pods, { namespace: world.namespace })
          expect(items).toEqual([])
        }, 120_000)
        // Proves that the search below looks in the right places.
        expect(Object.values(await leftovers()).join('\n')).toContain('process')

        await helm.succeeds('uninstall', ...release, '--timeout', '300s')
        const nothing = Object.fromEntries(cluster.nodes.map(node => [node, '']))
        expect(await leftovers()).toEqual(nothing)
        const { items } = await world.api.list(nodes, {})
        const marked = items.flatMap(({ metadata }) => Object.keys(metadata.labels ?? {}))
        expect(marked.filter(label => label.startsWith('backup.example.com/'))).toEqual([])
        const kinds = await kubectl('get', 'crd', '-o', 'name')
        expect(kinds).toContain('backuppodsets.backup.example.com')
        expect(kinds).not.toContain('nodereports.backup.example.com')
      } finally {
        // For the tests that come after this one, whatever has failed.
        try {
          await helm.run('uninstall', ...release, '--no-hooks', '--ignore-not-found', ...patience)
          // Helm does not wait for what the API server deletes afterwards.
          await eventually(async () => {
            const left = await kubectl('get', 'namespaces,crd', '-o', 'name')
            expect(left).not.toContain('understudy-agents')
            expect(left).not.toContain('nodereports')
          }, 300_000)
        } finally {
          await deployOperator(cluster, { progress: createProgress(process.stderr) })
        }
      }
    },
    buildMs,
  )
})
