import { randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { leases, namespaces } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { startOperatorHere } from './lib/operator-here.ts'
import { adminKubeconfig } from './lib/plane.ts'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

it('who leads no more tells nothing of sets', async () => {
  const namespace = `gauges-${randomBytes(4).toString('hex')}`
  const api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  const metricsPort = await freePort()
  const told = async () =>
    (await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text())
      .split('\n')
      .filter(line => line.startsWith('understudy_pods{') && line.includes(`"${namespace}"`))
  try {
    await api.create(namespaces, { metadata: { name: namespace } })
    await using _ = startOperatorHere(namespace, { leaderElect: true, metricsPort })
    const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
    await api.create(
      backupPodSets,
      {
        ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet' },
        ...{ metadata: { name: 'counted' }, spec: { replicas: 1, template } },
      },
      { namespace },
    )
    await eventually(async () => expect(await told()).toHaveLength(3))
    const ref = { namespace, name: 'understudy-operator' }
    const spec = {
      holderIdentity: 'other',
      renewTime: '2999-01-01T00:00:00.000000Z',
      leaseDurationSeconds: 3600,
    }
    await api.patch(leases, ref, { type: 'merge', body: { spec } })
    await eventually(async () => expect(await told()).toEqual([]))
    // It is a standby now, and becomes the leader again.
    await api.patch(leases, ref, { type: 'merge', body: { spec: { holderIdentity: '' } } })
    await eventually(async () => expect(await told()).toHaveLength(3))
  } finally {
    await api.delete(namespaces, { name: namespace })
    await api.close()
  }
})
