/** MigratingPods on real kubelets, as a user and a client see them. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { labels } from '../../../src/api/labels.ts'
import { type MigratingPod, type MigratingPodSpec, migratingPods } from '../../../src/api/migrating-pod.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { numberIn } from '../../../zoo/http-specimen.ts'
import { counter } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { often, type World } from './world.ts'

export const create = async (
  { api, namespace }: World,
  name: string,
  spec: Partial<MigratingPodSpec> = {},
): Promise<void> => {
  const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod' }
  const { template } = counter
  const checkpoint = often({ interval: '1s', ...spec.checkpoint })
  const body = { ...kind, metadata: { name }, spec: { template, ...spec, checkpoint } }
  await api.create(migratingPods, body, { namespace })
}

export const podNamed = ({ api, namespace }: World, name: string): Promise<Pod> =>
  api.get(pods, { namespace, name })

/** Waits until the pod runs, and another node has its memory. */
export const saved = (world: World, name: string, activePod: string): Promise<MigratingPod> =>
  eventually(async () => {
    const now = await world.api.get(migratingPods, { namespace: world.namespace, name })
    expect(now.status, JSON.stringify(now.status)).toMatchObject({ state: 'Running', activePod })
    const conditions = now.status?.conditions?.map(({ type, status }) => `${type} ${status}`)
    expect(conditions, JSON.stringify(now.status)).toEqual(
      expect.arrayContaining(['Ready True', 'CheckpointReady True']),
    )
    return now
  }, 180_000)

/** Counts once, and returns the number that the app answers. */
export async function countAt(ip: string, port = 8080): Promise<number> {
  // A stopped pod answers nothing.
  const answer = await fetch(`http://${ip}:${port}/`, { signal: AbortSignal.timeout(500) })
  return numberIn(asRecord(await answer.json()), 'count')
}

/** Returns what the app has in its memory: its number, its process id, and the name of the pod in which it was started. */
export const peek = async (ip: string) => asRecord(await (await fetch(`http://${ip}:8080/peek`)).json())

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {}

/**
 * A client that counts without a pause wherever the pod is, until the signal fires. Each number has to be greater than the one before: a
 * number that was answered is in the memory. Numbers may be missing, because answers get lost.
 */
export async function countOn({ api, namespace }: World, name: string, signal: AbortSignal) {
  let last = 0
  let wrong: string | undefined
  const labelSelector = `${labels.set}=${name},${labels.type}=primary`
  while (!signal.aborted) {
    const { items } = await api.list(pods, { namespace, labelSelector })
    for (const { metadata, status } of items) {
      if (status?.podIP === undefined) continue
      try {
        while (!signal.aborted) {
          const value = await countAt(status.podIP)
          if (value <= last) wrong ??= `${value} after ${last} at ${metadata.name}`
          last = value
        }
      } catch {
        // The pod has stopped, or does not run yet.
      }
    }
    await pause(5)
  }
  return { last, wrong }
}
