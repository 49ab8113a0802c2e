import { expect, test } from 'vitest'
import { formatStatus } from './status.ts'

const counts = { processes: 3 }

test('the status of a cluster is a table of its machines', () => {
  const text = formatStatus({
    name: 'a',
    state: 'degraded',
    machines: [
      { name: 'cp', power: true, services: { etcd: true, 'kube-apiserver': false } },
      { name: 'n1', power: false, services: { kubelet: false }, ready: undefined },
    ],
    counts,
  })
  expect(text.split('\n')).toEqual([
    'cluster a: degraded',
    '  MACHINE   POWER   READY   SERVICES',
    '  cp        on      -       etcd ok, kube-apiserver NO',
    '  n1        OFF     ?       kubelet NO',
    '  on this machine: 3 processes',
  ])
})

test('a cluster without machines has no table', () => {
  expect(formatStatus({ name: 'a', state: 'down', machines: [], counts }).split('\n')).toHaveLength(2)
})
