/** Pods that begin with the memory of another pod, which runs on. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { clonePods } from '../../../src/api/clone-pod.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { runCli } from '../../../src/cli/program.ts'
import { recordingTerminal } from '../../../src/cli/testing/terminal.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  createCounters,
  holderOf,
  killApp,
  promoted,
  readSlot,
  restartsOf,
  saved,
  slotsOf,
} from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { project } from '../../unit/deploy/manifests.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { create, podNamed, saved as savedPod } from '../lib/migrating-pods.ts'
import { withFlag, withoutFlag } from '../lib/operator-flag.ts'
import { createWorld } from '../lib/world.ts'

const patientMs = 180_000

/** The scheduler may put a hot backup beside a primary; then a pod is made for that slot. */
const anywhere = ['Frozen', 'Staged', 'Cold'] as const

/** Resolves with the slots of the set once each has served, as its condition says. */
const begun = (set: CounterSet, wanted: number) =>
  eventually(async () => {
    const { status } = await set.api.get(backupPodSets, set)
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Cloned', status: 'True' }))
    const slots = await slotsOf(set)
    expect(slots.map(({ cloneOf }) => cloneOf)).toEqual(Array.from({ length: wanted }, () => undefined))
    return slots
  }, patientMs)

const one = <T>([first]: readonly T[]): T => {
  if (first === undefined) throw new Error('there is none')
  return first
}

/** Creates an object as a user who may write sets and MigratingPods in the namespace, and do nothing else there. */
async function createAs(user: string, namespace: string, object: object): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'clone-'))
  const file = join(directory, 'object.json')
  try {
    await writeFile(file, JSON.stringify({ apiVersion: 'backup.example.com/v1alpha1', ...object }))
    return await kubectl('-n', namespace, `--as=${user}`, 'create', '-f', file)
  } finally {
    await rm(directory, { recursive: true })
  }
}

describe.skipIf(needsNodes())('a clone', () => {
  it('MP-28: begins with the memory of a primary that runs on; each goes its own way, and survives its own failure', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const source: CounterSet = { api, namespace, name: 'source' }
    await createCounters(source, { replicas: 1, hotBackups: 1 })
    await eventually(async () => expect(await slotsOf(source)).toHaveLength(1), patientMs)
    await saved(source)
    const told = one(await count(source, 7))
    await saved(source)
    const original = one(await slotsOf(source))
    const pod = await holderOf(source, original)
    const processes = await pidsOf(pod.metadata.uid, counter.program)
    expect(processes).toHaveLength(1)

    const clones: CounterSet = { api, namespace, name: 'clones' }
    await createCounters(clones, { replicas: 2, hotBackups: 1, cloneFrom: { pod: original.holder.name } })
    const slots = await begun(clones, 2)
    for (const slot of slots) expect(await readSlot(clones, slot)).toBe(told)
    // Its source has the same process and its own count, which nothing of the clones changes.
    const undisturbed = async (number: number) => {
      expect(one(await slotsOf(source))).toMatchObject({ holder: original.holder, epoch: original.epoch })
      expect(await pidsOf(pod.metadata.uid, counter.program)).toEqual(processes)
      expect(await restartsOf(source)).toEqual({})
      expect(await counter.read(addressOf(pod))).toBe(number)
    }
    await undisturbed(told)
    const { lastFailover } = (await api.get(backupPodSets, clones)).status ?? {}
    expect(lastFailover).toBeUndefined()

    const numbers = await count(clones, 2)
    expect(new Set([told, ...numbers]).size).toBe(3)
    await undisturbed(told)
    const onward = one(await count(source, 1))
    expect(onward).toBe(told + 1)
    await saved(clones, anywhere)
    const first = one(await slotsOf(clones))
    await killApp(await holderOf(clones, first))
    const next = await promoted(clones, first)
    expect(await readSlot(clones, next)).toBe(numbers[0])
    await undisturbed(onward)

    // Then the source is deleted, with all its memory.
    await api.delete(backupPodSets, source)
    await eventually(async () => expect(await slotsOf(source)).toEqual([]), patientMs)
    await saved(clones, anywhere)
    const last = one((await slotsOf(clones)).filter(({ slot }) => slot === 1))
    await killApp(await holderOf(clones, last))
    expect(await readSlot(clones, await promoted(clones, last))).toBe(numbers[1])
    expect(await readSlot(clones, next)).toBe(numbers[0])
  })

  it('MP-28: of a MigratingPod is a MigratingPod, for a user who may run commands in the source', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    await create(world, 'roaming')
    await savedPod(world, 'roaming', 'roaming-0')
    const source = await podNamed(world, 'roaming-0')
    for (let i = 0; i < 5; i += 1) await counter.add(addressOf(source))
    const told = await counter.read(addressOf(source))
    await saved({ api, namespace, name: 'roaming' }, anywhere)

    const { template } = counter
    const moving = { kind: 'MigratingPod', metadata: { name: 'copy' } }
    const spec = { template, clonePod: 'roaming-0', checkpoint: { interval: '1s' } }
    await kubectl(
      '-n',
      namespace,
      'create',
      'rolebinding',
      'sets',
      '--clusterrole=understudy-edit',
      '--user=tenant',
    )
    const refusal = /reads all memory of pod roaming-0.*pods\/exec/
    await expect(createAs('tenant', namespace, { ...moving, spec })).rejects.toThrow(refusal)
    const set = { kind: 'BackupPodSet', metadata: { name: 'copies' } }
    const cloning = { replicas: 1, checkpoint: {}, cloneFrom: { pod: 'roaming-0' }, template }
    await expect(createAs('tenant', namespace, { ...set, spec: cloning })).rejects.toThrow(refusal)
    const exec = ['--verb=create', '--resource=pods/exec', '--resource-name=roaming-0']
    await kubectl('-n', namespace, 'create', 'role', 'exec', ...exec)
    await kubectl('-n', namespace, 'create', 'rolebinding', 'exec', '--role=exec', '--user=tenant')
    await eventually(() => createAs('tenant', namespace, { ...moving, spec }))

    await eventually(async () => {
      const { status } = await api.get(migratingPods, { namespace, name: 'copy' })
      expect(status, JSON.stringify(status)).toMatchObject({ state: 'Running', activePod: 'copy-0' })
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Cloned', status: 'True' }))
    }, patientMs)
    const copy = await podNamed(world, 'copy-0')
    expect(await counter.read(addressOf(copy))).toBe(told)
    await counter.add(addressOf(copy))
    expect(await counter.read(addressOf(source))).toBe(told)
    expect((await podNamed(world, 'roaming-0')).metadata.uid).toBe(source.metadata.uid)

    const terminal = recordingTerminal()
    const { kubeconfigPath } = await playground()
    const args = ['--kubeconfig', kubeconfigPath, '-n', namespace, 'clone', 'roaming-0', '--name', 'other']
    const exitCode = await runCli(args, terminal, AbortSignal.timeout(patientMs))
    expect(exitCode, terminal.told.join('\n')).toBe(0)
    expect(terminal.written.join('\n')).toMatch(/^other runs with the memory of roaming-0\n {2}other-0 on n/)
    expect(await counter.read(addressOf(await podNamed(world, 'other-0')))).toBe(told)
  })
})

describe.skipIf(needsNodes())('a ClonePod', () => {
  const files = ['rbac', 'admission'].map(name => `${project}/deploy/clone-pods/${name}.yaml`)
  beforeAll(async () => {
    await kubectl('apply', '-k', `${project}/crds/clone-pods`)
    for (const file of files) await kubectl('apply', '-f', file)
    await withFlag('--clone-pods')
  })
  afterAll(async () => {
    await withoutFlag('--clone-pods')
    for (const file of files) await kubectl('delete', '-f', file)
    await kubectl('delete', '-k', `${project}/crds/clone-pods`)
  })

  it('MP-28: copies a pod once, which runs on, and is collected; the copy survives a failure of its own', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    await create(world, 'roaming')
    await savedPod(world, 'roaming', 'roaming-0')
    const source = await podNamed(world, 'roaming-0')
    for (let i = 0; i < 5; i += 1) await counter.add(addressOf(source))
    const told = await counter.read(addressOf(source))
    await saved({ api, namespace, name: 'roaming' }, anywhere)

    const ref = { namespace, name: 'copy' }
    const spec = { source: { name: 'roaming-0', uid: source.metadata.uid }, ttlSecondsAfterFinished: 5 }
    const task = { kind: 'ClonePod', metadata: { name: 'copy' }, spec }
    const roles = ['understudy-edit', 'understudy-clone-pods']
    for (const role of roles)
      await kubectl('-n', namespace, 'create', 'rolebinding', role, `--clusterrole=${role}`, '--user=tenant')
    await expect(createAs('tenant', namespace, task)).rejects.toThrow(/reads all memory of pod roaming-0/)
    const exec = ['--verb=create', '--resource=pods/exec', '--resource-name=roaming-0']
    await kubectl('-n', namespace, 'create', 'role', 'exec', ...exec)
    await kubectl('-n', namespace, 'create', 'rolebinding', 'exec', '--role=exec', '--user=tenant')
    await eventually(() => createAs('tenant', namespace, task))
    await eventually(async () => {
      const { status } = await api.get(clonePods, ref)
      expect(status, JSON.stringify(status)).toMatchObject({ phase: 'Succeeded', target: { pod: 'copy-0' } })
    }, patientMs)

    const copy = await podNamed(world, 'copy-0')
    expect(await counter.read(addressOf(copy))).toBe(told)
    await counter.add(addressOf(copy))
    expect(await counter.read(addressOf(source))).toBe(told)
    expect((await podNamed(world, 'roaming-0')).metadata.uid).toBe(source.metadata.uid)
    // It goes, and what it made stays.
    await eventually(
      async () => expect((await api.list(clonePods, { namespace })).items).toEqual([]),
      patientMs,
    )
    expect((await podNamed(world, 'copy-0')).metadata.uid).toBe(copy.metadata.uid)
    await savedPod(world, 'copy', 'copy-0')
    await saved({ api, namespace, name: 'copy' }, anywhere)
    await killApp(copy)
    await savedPod(world, 'copy', 'copy-1')
    expect(await counter.read(addressOf(await podNamed(world, 'copy-1')))).toBe(told + 1)
  })
})
