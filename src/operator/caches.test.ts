import { expect, it } from 'vitest'
import { containerIdsOf } from '../api/stage.ts'
import type { Pod } from '../kube/resources.ts'
import { withoutBallast } from './caches.ts'

it('D7.ids: what the cache keeps of a pod still says which containers have the memory of its slot', () => {
  const status = (name: string) => ({
    ...{ name, image: '', imageID: '', ready: true, restartCount: 0 },
    containerID: `containerd://${name}`,
  })
  const pod: Pod = {
    metadata: { name: 'p', uid: 'p', resourceVersion: '1', managedFields: [{}] },
    spec: {
      nodeName: 'n',
      containers: [
        { name: 'app', image: 'web:1', env: [{ name: 'SECRET', value: 'long' }] },
        { name: 'side', image: 'web:1' },
      ],
    },
    status: { containerStatuses: [status('app'), status('side')] },
  }
  const kept = withoutBallast(pod)
  expect(containerIdsOf(kept)).toBe('app=containerd://app,side=containerd://side')
  expect(kept.spec).toEqual({ nodeName: 'n', containers: [{ name: 'app' }, { name: 'side' }] })
  expect(kept.metadata.managedFields).toBeUndefined()
})

it('R20: and whose token opens its gate', () => {
  const command = ['/waker', 'wait', '--token-sha256', 'abc']
  const kept = withoutBallast({
    metadata: { name: 'p', uid: 'p', resourceVersion: '1' },
    spec: {
      containers: [],
      initContainers: [
        { name: 'understudy-gate', image: 'waker', command, restartPolicy: 'Always' },
        { name: 'setup', image: 'web:1', command: ['long'] },
      ],
    },
  })
  expect(kept.spec?.initContainers).toEqual([
    { name: 'understudy-gate', command, restartPolicy: 'Always' },
    { name: 'setup' },
  ])
})

it('D6.claims: and which claims it has', () => {
  const claim = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
  const volumes = [claim, { name: 'scratch', emptyDir: {} }]
  const kept = withoutBallast({
    metadata: { name: 'p', uid: 'p', resourceVersion: '1' },
    spec: { containers: [], volumes },
  })
  expect(kept.spec?.volumes).toEqual([claim])
})
