/** The samples of samples/by-use on a cluster without a registry: images of the same programs stand in for the public ones. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kill } from 'node:process'
import { expect } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { externalServicesAllowed } from '../../../src/api/external-services.ts'
import type { NumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { namespaces, type Pod } from '../../../src/kube/resources.ts'
import { addressOf, holderOf, promoted, saved, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl } from './cluster.ts'
import { type TestSet, testSet, type World } from './world.ts'

/**
 * Each public image that a sample names, and the image with the same program from Debian's packages (Node: from npm) that the test uses.
 * Nothing else of a sample changes.
 */
export const standIns: Readonly<Record<string, string>> = {
  'docker.io/library/redis:8.0': 'understudy.invalid/redis:8.0',
  'docker.io/library/node:24-slim': 'understudy.invalid/zoo:0.1.0',
  'docker.io/library/python:3.13-slim': 'understudy.invalid/zoo:0.1.0',
  'docker.io/library/eclipse-temurin:21': 'understudy.invalid/zoo-java:0.1.0',
}

const directory = new URL('../../../samples/by-use/', import.meta.url)

/** Applies a sample, with other images, in the namespace of this world. */
export async function applySample({ api, namespace }: World, file: string, set: string): Promise<TestSet> {
  const text = await readFile(new URL(file, directory), 'utf8')
  const images = [...text.matchAll(/^ *image: (\S+)$/gm)].map(([, image = '']) => image)
  expect(images.length).toBeGreaterThan(0)
  expect(images.filter(image => standIns[image] === undefined)).toEqual([])
  const changed = text.replace(
    /^( *image: )(\S+)$/gm,
    (_, head: string, image: string) => head + standIns[image],
  )
  await api.patch(
    namespaces,
    { name: namespace },
    { type: 'merge', body: { metadata: { labels: externalServicesAllowed } } },
  )
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-sample-'))
  try {
    await writeFile(join(scratch, file), changed)
    await kubectl('apply', '-n', namespace, '-f', join(scratch, file))
  } finally {
    await rm(scratch, { recursive: true })
  }
  return testSet(api, namespace, set)
}

/** The primary of a slot, by its Lease. */
export async function holder(world: World, set: TestSet, slot = 0): Promise<{ pod: Pod; ip: string }> {
  const lease = await leaseOf(world, set, slot)
  const pod = await holderOf({ ...world, name: set.name }, lease)
  return { pod, ip: addressOf(pod) }
}

async function leaseOf(world: World, { name }: TestSet, slot: number): Promise<NumberedSlotLease> {
  const lease = (await slotsOf({ ...world, name })).find(each => each.slot === slot)
  if (lease === undefined) throw new Error(`slot ${slot} has no Lease`)
  return lease
}

/**
 * Waits until a successor would resume what every slot has in memory now. A hot backup resumes what is on its own node, even if another
 * node has memory that is up to an interval newer.
 */
export async function safe(world: World, set: TestSet): Promise<void> {
  const { spec } = await set.get()
  const isHot = (spec.hotBackups ?? 0) > 0
  await saved({ ...world, name: set.name }, isHot ? ['Frozen', 'Staged'] : ['Frozen', 'Staged', 'Cold'])
}

/** Kills the program of a slot's primary, as an error in it would, and waits until another pod holds the slot. */
export async function killed(world: World, set: TestSet, program: string, slot = 0): Promise<Pod> {
  const before = await leaseOf(world, set, slot)
  const { pod } = await holder(world, set, slot)
  const pids = await pidsOf(pod.metadata.uid, program)
  if (pids.length === 0) throw new Error(`no ${program} runs in ${pod.metadata.name}`)
  for (const pid of pids) kill(pid, 'SIGKILL')
  const after = await promoted({ ...world, name: set.name }, before)
  expect(after.holder.uid).not.toBe(pod.metadata.uid)
  return holderOf({ ...world, name: set.name }, after)
}

/** The answer of a pod over HTTP, once it gives one. */
export const answer = (world: World, set: TestSet, path: string, init: RequestInit = {}): Promise<Response> =>
  eventually(async () => {
    const { ip } = await holder(world, set)
    return fetch(`http://${ip}:8080${path}`, { ...init, signal: AbortSignal.timeout(5_000) })
  }, 120_000)
