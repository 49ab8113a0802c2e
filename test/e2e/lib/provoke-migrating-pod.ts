import { expect } from 'vitest'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { apiVersionOf } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { counterTemplate, type World } from './world.ts'

/** A MigratingPod whose set a user scales. */
export async function provokeMigratingPod({ api, namespace }: World): Promise<void> {
  const ref = { namespace, name: 'one' }
  const about = { apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind, metadata: ref }
  await api.create(migratingPods, { ...about, spec: { template: counterTemplate } }, { namespace })
  const replicas = async () => (await api.get(backupPodSets, ref)).spec.replicas
  await eventually(async () => expect(await replicas()).toBe(1))
  await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { replicas: 0 } } })
  await eventually(async () => expect(await replicas()).toBe(1))
  await eventually(async () => expect((await api.get(migratingPods, ref)).status?.state).toBe('Running'))
}
