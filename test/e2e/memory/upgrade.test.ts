/** Upgrades from the version before, as docs/operate.md says, under load and with failures in the middle. */
import { describe, expect, it } from 'vitest'
import type { Cluster } from '../../../playground/cluster.ts'
import { deployOperator } from '../../../playground/deploy.ts'
import type { NumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { stageLabel } from '../../../src/api/pod-contract.ts'
import { isReady } from '../../../src/kube/ready.ts'
import { nodes, type Pod } from '../../../src/kube/resources.ts'
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
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { cli } from '../lib/installation.ts'
import { containersOf, startLoad } from '../lib/load.ts'
import { previousVersion } from '../lib/previous-version.ts'
import { alone, createWorld, replicas } from '../lib/world.ts'

const progress = createProgress(process.stderr)
/** The order of docs/operate.md. */
const beforeAgents = ['crds', 'deploy/admission', 'deploy/operator'] as const

const imagesOf = (pods: readonly Pod[]): readonly string[] =>
  pods.flatMap(({ spec }) => spec?.containers.map(({ image = '' }) => image) ?? [])

async function installPrevious(cluster: Cluster): Promise<void> {
  const previous = await previousVersion()
  await cluster.loadImages(previous.images)
  const { exitCode, err } = await cli('uninstall')
  expect([exitCode, err]).toEqual([0, expect.anything()])
  await kubectl('delete', '-k', 'deploy/', '--wait', '--timeout=120s')
  await deployOperator(cluster, { progress, directory: previous.deploy })
}

describe.skipIf(needsNodes())('an upgrade from the version before', () => {
  it('restarts no pod and loses no memory, also of primaries that die in the middle', async () => {
    const cluster = await playground()
    await using world = await createWorld()
    await alone(world)
    const inside: CounterSet = { api: world.api, namespace: world.namespace, name: 'kept' }
    try {
      await installPrevious(cluster)
      const old = imagesOf([...(await replicas(world)), ...(await agentPods(world.api))])
      expect(old.filter(image => !image.endsWith(':0.0.9'))).toEqual([])

      // Backups go only to nodes whose agents have checked them. If that were one node, it would have them all, and the
      // version before would leave the primary of that node uncovered.
      await eventually(async () => {
        const able = await world.api.list(nodes, { labelSelector: `${stageLabel}=ready` })
        expect(able.items).toHaveLength(cluster.nodes.length)
      })
      const set = await world.createSet('kept', {
        ...{ replicas: 3, hotBackups: 3, coldBackups: 1, template: counter.template },
        checkpoint: { interval: '1s' },
      })
      await eventually(async () => expect(await slotsOf(inside)).toHaveLength(3))
      await saved(inside)
      const expected = await count(inside, 5)
      await saved(inside)
      const [first, second, third] = (await slotsOf(inside)) as [
        NumberedSlotLease,
        NumberedSlotLease,
        NumberedSlotLease,
      ]
      const before = await containersOf(set)
      const load = startLoad(addressOf(await holderOf(inside, third)))

      for (const directory of beforeAgents) await deployOperator(cluster, { progress, directory })
      // The rollout is over before the last replica of the version before has ended.
      await eventually(async () =>
        expect(imagesOf(await replicas(world)).filter(image => image.endsWith(':0.0.9'))).toEqual([]),
      )

      const killed = new Set<string>()
      const kill = async (lease: NumberedSlotLease) => {
        const holder = await holderOf(inside, lease)
        killed.add(holder.metadata.uid)
        await killApp(holder)
        return readSlot(inside, await promoted(inside, lease))
      }
      const rollout = deployOperator(cluster, { progress, directory: 'deploy/agent' })
      const updated = async (number: number) =>
        eventually(async () => {
          const ready = (await agentPods(world.api)).filter(isReady)
          expect(imagesOf(ready).filter(image => !image.endsWith(':0.0.9'))).toHaveLength(number)
          return true
        })
      await updated(1)
      expect(await kill(first)).toBe(expected[0])
      const mixed = imagesOf(await agentPods(world.api))
      expect(mixed.some(image => image.endsWith(':0.0.9'))).toBe(true)
      await updated(2)
      expect(await kill(second)).toBe(expected[1])
      await rollout

      // The new agents have taken over what the old ones kept, and save by themselves. After two takeovers, all understudies
      // may be on the node of a primary, which they do not cover: then a successor has to be woken or created.
      const anyhow = ['Frozen', 'Staged', 'Cold'] as const
      await saved(inside, anyhow)
      const { last, failures } = await load.stop()
      expect(failures).toEqual([])
      expect(last).toBeGreaterThan((expected[2] ?? 0) + 50)
      const after = await containersOf(set)
      // A cold backup that was woken to fill the place of a promoted one had no container yet.
      const others = [...before].filter(([uid, containers]) => !killed.has(uid) && containers !== '')
      expect(others.length).toBeGreaterThanOrEqual(4)
      expect(others.map(([uid]) => [uid, after.get(uid)])).toEqual(others)
      expect((await slotsOf(inside))[2]?.holder).toEqual(third.holder)

      await saved(inside, anyhow)
      expect(await kill(third)).toBe(last)
      expect((await slotsOf(inside)).map(({ incarnation }) => incarnation)).toEqual(
        [first, second, third].map(({ incarnation }) => incarnation),
      )
    } finally {
      // For the tests that come after this one, whatever has failed.
      await deployOperator(cluster, { progress })
    }
  }, 900_000)
})
