import { expect, test } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { NodeReport } from '../../api/node-report.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import type { Pod } from '../../kube/resources.ts'
import { atGate, pod, report, set, slotReport, understudyCondition } from '../testing/objects.ts'
import { indexOf } from './report-index.ts'
import { followersIn } from './successors.ts'

const slot: SlotStatus = {
  ...{ slot: 0, pod: 'web-p', node: 'n1', epoch: 2, ready: true, protection: 'Frozen', usableOn: ['n2'] },
}
const frozen = (name: string, node: string) =>
  pod(name, 'hotbackup', { node, status: understudyCondition('True', 'Frozen', '') })
const cold = pod('web-c', 'coldbackup', { node: 'n4', status: atGate })
const of = (pods: readonly Pod[], reports: readonly NodeReport[] | undefined, of: BackupPodSet = set()) =>
  followersIn(of, pods)(slot, reports && indexOf(reports).slot('shop', 'web-0'))

test('the hot backup that has the frozen clone follows, and no other one', () => {
  const pods = [frozen('web-a', 'n2'), frozen('web-b', 'n3'), cold]
  const reports = [
    report('n2', { slots: [slotReport({ usable: 'Frozen', understudyUid: 'uid-web-a' })] }),
    report('n3', { slots: [slotReport({ usable: 'Staged' })] }),
  ]
  expect(of(pods, reports)).toEqual([{ how: 'Frozen', pod: 'web-a', node: 'n2' }])
})

test('a clone of a pod that is gone counts for no other pod of the node', () => {
  const reports = [report('n2', { slots: [slotReport({ usable: 'Frozen', understudyUid: 'uid-gone' })] })]
  expect(of([frozen('web-a', 'n2')], reports)).toEqual([{ how: 'Created' }])
})

test('without a clone, those follow whose node has the memory staged', () => {
  const pods = [frozen('web-a', 'n2'), frozen('web-b', 'n3')]
  const reports = [report('n3', { slots: [slotReport({ usable: 'Staged' })] }), report('n2')]
  expect(of(pods, reports)).toEqual([{ how: 'Staged', pod: 'web-b', node: 'n3' }])
})

test('a backup that is not in place, or ends, does not follow; then a cold one does, then a new pod', () => {
  const notReady = pod('web-a', 'hotbackup', {
    node: 'n2',
    status: understudyCondition('False', 'NoGeneration', ''),
  })
  const ending = {
    ...frozen('web-b', 'n2'),
    metadata: { ...frozen('web-b', 'n2').metadata, deletionTimestamp: 'x' },
  }
  const reports = [report('n2', { slots: [slotReport({ usable: 'Staged' })] })]
  expect(of([notReady, ending, cold], reports)).toEqual([{ how: 'Cold', pod: 'web-c', node: 'n4' }])
  expect(of([notReady, ending], reports)).toEqual([{ how: 'Created' }])
})

test('who may not read reports gets what the status of the set says', () => {
  expect(of([frozen('web-a', 'n2'), frozen('web-b', 'n3')], undefined)).toEqual([
    { how: 'Frozen', pod: 'web-a', node: 'n2' },
  ])
})

test('a set without memory is followed by any hot backup that is ready', () => {
  const { checkpoint: _, ...spec } = set().spec
  const warm = pod('web-a', 'hotbackup', { node: 'n2' })
  const ready = { ...warm, spec: { ...warm.spec, initContainers: [], containers: [] } }
  expect(of([ready], [], { ...set(), spec })).toEqual([{ how: 'Warm', pod: 'web-a', node: 'n2' }])
})
