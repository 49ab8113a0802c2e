import { expect, test } from 'vitest'
import { gateContainerName } from '../api/gate.ts'
import type { Pod } from '../kube/resources.ts'
import { restartMsOf } from './restart.ts'

const container = (startedAt: string | undefined, restartCount = 0) => ({
  ...{ name: startedAt ?? 'waiting', image: '', imageID: '', ready: true, restartCount },
  state: startedAt === undefined ? {} : { running: { startedAt } },
})
const pod = (containerStatuses: readonly ReturnType<typeof container>[], over: Partial<Pod> = {}): Pod => ({
  metadata: { name: 'p', uid: 'p', resourceVersion: '1' },
  status: { startTime: '2030-01-01T00:00:00Z', containerStatuses },
  ...over,
})
const [early, late] = [container('2030-01-01T00:00:02Z'), container('2030-01-01T00:00:05Z')]

test('MP-32 a restart takes at least as long as the pod needed until its last container ran', () => {
  expect(restartMsOf(pod([early, late]))).toBe(6_000)
})

test.each<[string, Pod | undefined]>([
  ['there is no pod', undefined],
  ['the kubelet has not seen it', pod([early], { status: { containerStatuses: [early] } })],
  ['no container is known', pod([])],
  ['one does not run', pod([early, container(undefined)])],
  ['one has been restarted', pod([early, container('2030-01-01T01:00:00Z', 1)])],
  [
    'it waited at a gate',
    pod([early], { spec: { containers: [], initContainers: [{ name: gateContainerName }] } }),
  ],
  ['the clock went back', pod([container('2029-12-31T23:59:00Z')])],
])('MP-32 nothing is known of a restart if %s', (_, given) => {
  expect(restartMsOf(given)).toBeUndefined()
})
