import { describe, expect, it } from 'vitest'
import type { BackupPodSet, BackupPodSetStatus } from '../api/backuppodset.ts'
import { podConditions, type ServingRecord } from '../api/pod-contract.ts'
import { formatServingRecord, servingRecordAnnotation } from '../api/serving-record.ts'
import type { LastFailover } from '../api/slot-status.ts'
import type { Pod } from '../kube/resources.ts'
import { failoverSpans, newFailovers } from './failover.ts'
import { rootOf, traceOfChange } from './span.ts'

const endedAt = Date.parse('2030-01-01T00:00:10.000Z')

const failover: LastFailover = {
  ...{ slot: 0, from: 'web-a', to: 'web-b', reason: 'Died', seconds: 0.5, at: '2030-01-01T00:00:10.000Z' },
  ...{ how: 'Frozen', generation: 7, stateAge: 0.4 },
  phases: { serving: 0.3, published: 0.1, lease: 0.1 },
}

const setWith = (status: BackupPodSetStatus): BackupPodSet => ({
  metadata: { namespace: 'shop', name: 'web', uid: 'u', resourceVersion: '1' },
  spec: { template: { spec: { containers: [] } } },
  status,
})

const { phases: _, how: __, generation: ___, ...short } = failover
const slot = { slot: 0, pod: 'web-b', node: 'n2', epoch: 4, ready: true }
const set = setWith({ slots: [{ ...slot, lastFailover: short }], failovers: [failover] })

function lostPod(record: ServingRecord, reason = 'Died'): Pod {
  const message = 'container app has ended'
  return {
    metadata: {
      ...{ namespace: 'shop', name: 'web-a', uid: 'a', resourceVersion: '1' },
      annotations: { [servingRecordAnnotation]: formatServingRecord(record, message) ?? '' },
    },
    spec: { nodeName: 'n1', containers: [] },
    status: { conditions: [{ type: podConditions.serving, status: 'False', reason, message }] },
  }
}

const left = (at: number): ServingRecord => ({
  left: { generation: 7, takenAt: '2030-01-01T00:00:09Z', epoch: 3, usable: 'Staged', at },
})

describe('the spans of a failover that the operator knows', () => {
  it('are a root and one child for each step that the status has, one after the other', () => {
    const spans = failoverSpans({ set, slot, failover, lost: undefined })
    expect(spans.map(({ name, from, to }) => [name, from - endedAt, to - endedAt])).toEqual([
      ['failover', -500, 0],
      ['decide and write the Lease', -500, -400],
      ['wait until the app answers', -400, -100],
      ['write label and endpoints', -100, 0],
    ])
    const traceId = traceOfChange({ owner: 'u', slot: 'web-0', epoch: 4 })
    expect(new Set(spans.map(span => span.traceId))).toEqual(new Set([traceId]))
    expect(spans.map(span => span.parentId)).toEqual([undefined, ...Array(3).fill(rootOf(traceId))])
    expect(new Set(spans.map(span => span.spanId)).size).toBe(4)
    expect(spans[0]?.attributes).toMatchObject({
      ...{ 'k8s.namespace.name': 'shop', 'understudy.set': 'web', 'understudy.slot': 0 },
      ...{ 'understudy.from': 'web-a', 'understudy.to': 'web-b', 'understudy.to.node': 'n2' },
      ...{ 'understudy.memory': 'Frozen', 'understudy.generation': 7, 'understudy.died_at.known': false },
    })
  })

  it('have the same ids each time, and others for another epoch', () => {
    const once = failoverSpans({ set, slot, failover, lost: undefined })
    expect(failoverSpans({ set, slot, failover, lost: undefined })).toEqual(once)
    const [later] = failoverSpans({ set, slot: { ...slot, epoch: 5 }, failover, lost: undefined })
    expect(later?.traceId).not.toBe(once[0]?.traceId)
  })

  it('without memory have one child', () => {
    const { phases: _, ...plain } = failover
    expect(failoverSpans({ set, slot, failover: plain, lost: undefined }).map(({ name }) => name)).toEqual([
      'failover',
      'decide and write the label',
    ])
  })

  it.each([
    ['the agent has declared the death', left(endedAt - 620), 'Died', -620],
    ['its stamp is later than the first sight', left(endedAt - 100), 'Died', -500],
    ['its stamp is of another time', left(endedAt - 9_000_000), 'Died', -500],
    ['the record has no stamp', {}, 'Died', -500],
    ['the pod serves', left(endedAt - 620), 'OnStage', -500],
  ])('begin with the death: %s', (_, record, reason, from) => {
    const [root] = failoverSpans({ set, slot, failover, lost: lostPod(record, reason) })
    expect(root?.from).toBe(endedAt + from)
    expect(root?.attributes['understudy.from.node']).toBe('n1')
  })

  it('are none for a time that cannot be read', () => {
    expect(failoverSpans({ set, slot, failover: { ...failover, at: 'soon' }, lost: undefined })).toEqual([])
  })
})

describe('failovers that a status has and the one before has not', () => {
  it.each([
    ['a new set', set, undefined, 1],
    ['the first failover', set, setWith({ slots: [slot] }), 1],
    ['the same status', set, set, 0],
    [
      'another primary since, by a handover',
      setWith({ slots: [{ ...slot, pod: 'web-c', lastFailover: short }] }),
      undefined,
      0,
    ],
    ['no slots', setWith({}), undefined, 0],
  ])('%s', (_, now, before, count) => {
    expect(newFailovers(now, before)).toHaveLength(count)
  })

  it('have the steps, as long as the list of failovers has them', () => {
    expect(newFailovers(set, undefined)).toMatchObject([{ failover: { phases: failover.phases } }])
    const cut = setWith({ slots: [{ ...slot, lastFailover: short }], failovers: [] })
    expect(newFailovers(cut, undefined)).toMatchObject([{ failover: { slot: 0, to: 'web-b' } }])
  })
})
