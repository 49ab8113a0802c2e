/** A Job on real kubelets, managed by this operator: a drain moves its pod with its memory, and it ends as any Job. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jobIntervalAnnotation, jobManager } from '../../../src/api/migrating-job.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { jobs, leases } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { project } from '../../unit/deploy/manifests.ts'
import { kubectl, needsNodes } from '../lib/cluster.ts'
import { podNamed, saved } from '../lib/migrating-pods.ts'
import { withFlag, withoutFlag } from '../lib/operator-flag.ts'
import { createWorld, restartsOf } from '../lib/world.ts'

const files = ['rbac', 'admission'].map(name => `${project}/deploy/migrating-jobs/${name}.yaml`)
/** Counts in its memory alone, until there is a file. */
const program = `
import os, time
n = 0
while not os.path.exists('/tmp/stop'):
    n += 1
    print(n, flush=True)
    time.sleep(0.1)
print('end', n, flush=True)
`

describe.skipIf(needsNodes())('a Job that this operator manages', () => {
  beforeAll(async () => {
    for (const file of files) await kubectl('apply', '-f', file)
    await withFlag('--migrating-jobs')
  })
  afterAll(async () => {
    await withoutFlag('--migrating-jobs')
    for (const file of files) await kubectl('delete', '-f', file)
  })

  it('MP-29: survives a drain with its memory, and is complete with one success and no failure', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const ref = { namespace, name: 'count' }
    const app = {
      ...{ name: 'app', image: 'understudy.invalid/zoo:0.1.0', imagePullPolicy: 'IfNotPresent' },
      command: ['/usr/bin/python3', '-c', program],
    }
    const spec = {
      ...{ managedBy: jobManager, backoffLimit: 0 },
      template: {
        spec: { restartPolicy: 'Never', automountServiceAccountToken: false, containers: [app] },
      },
    }
    const metadata = { name: 'count', annotations: { [jobIntervalAnnotation]: '1s' } }
    await api.create(jobs, { apiVersion: 'batch/v1', kind: 'Job', metadata, spec }, { namespace })
    await saved(world, 'count', 'count-0')
    const numbers = async (pod: string) =>
      (await kubectl('-n', namespace, 'logs', pod)).split('\n').map(Number).filter(Number.isSafeInteger)
    const first = await podNamed(world, 'count-0')
    const node = first.spec?.nodeName ?? ''
    const reached = Math.max(...(await numbers('count-0')))

    await kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=300s')
    try {
      await saved(world, 'count', 'count-1')
      const second = await podNamed(world, 'count-1')
      expect(second.spec?.nodeName).not.toBe(node)
      const own = await eventually(async () => {
        const all = (await numbers('count-1')).filter(each => each > 0)
        expect(all.length).toBeGreaterThan(10)
        return all
      })
      // It counts on from what it had, and leaves no number out.
      expect(own[0]).toBeGreaterThan(reached)
      expect(own).toEqual(own.map((_, index) => (own[0] ?? 0) + index))
      expect((await api.get(jobs, ref)).status).toMatchObject({ active: 1 })

      await kubectl('-n', namespace, 'exec', 'count-1', '--', '/usr/bin/sh', '-c', ': > /tmp/stop')
      await kubectl('-n', namespace, 'wait', '--for=condition=complete', 'job/count', '--timeout=120s')
      const { status } = await api.get(jobs, ref)
      expect([status?.succeeded, status?.failed ?? 0, status?.active ?? 0]).toEqual([1, 0, 0])
      expect(await kubectl('-n', namespace, 'logs', 'job/count')).toMatch(/\nend \d+\n$/)
      const done = await podNamed(world, 'count-1')
      expect([done.status?.phase, restartsOf(done)]).toEqual(['Succeeded', 0])
      expect((await api.get(migratingPods, ref)).status).toMatchObject({ state: 'Completed' })
      const kept = async () => (await api.list(leases, { namespace })).items.map(each => each.metadata.name)
      await eventually(async () => expect(await kept()).not.toContain('count-0'))
    } finally {
      await kubectl('uncordon', node)
    }
    await kubectl('-n', namespace, 'delete', 'job/count')
    await eventually(async () => {
      const left = await kubectl('-n', namespace, 'get', 'mpod,bps,pods', '-o', 'name')
      expect(left.trim()).toBe('')
    })
  })

  it('MP-29: whose app fails is continued from its last saved state, and fails as backoffLimit says', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const app = {
      ...{ name: 'app', image: 'understudy.invalid/zoo:0.1.0', imagePullPolicy: 'IfNotPresent' },
      command: ['/usr/bin/python3', '-c', `${program}\nraise SystemExit(3)`],
    }
    const spec = {
      ...{ managedBy: jobManager, backoffLimit: 0 },
      template: {
        spec: { restartPolicy: 'OnFailure', automountServiceAccountToken: false, containers: [app] },
      },
    }
    const metadata = { name: 'fails', annotations: { [jobIntervalAnnotation]: '1s' } }
    await api.create(jobs, { apiVersion: 'batch/v1', kind: 'Job', metadata, spec }, { namespace })
    await saved(world, 'fails', 'fails-0')
    await kubectl('-n', namespace, 'exec', 'fails-0', '--', '/usr/bin/sh', '-c', ': > /tmp/stop')
    await kubectl('-n', namespace, 'wait', '--for=condition=failed', 'job/fails', '--timeout=180s')
    const { status } = await api.get(jobs, { namespace, name: 'fails' })
    expect(status?.conditions?.find(({ type }) => type === 'Failed')?.reason).toBe('BackoffLimitExceeded')
    await eventually(async () => {
      const left = await kubectl('-n', namespace, 'get', 'mpod,bps,pods', '-o', 'name')
      expect(left.trim()).toBe('')
    })
  })
})
