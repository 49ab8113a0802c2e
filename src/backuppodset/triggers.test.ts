import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { type NodeReportStatus, type SlotReport, silencesAnnotation } from '../api/node-report.ts'
import { outOfService } from '../api/out-of-service.ts'
import type { Change } from '../kube/store.ts'
import { makeObject } from '../kube/testing/fake-api.ts'
import { makePodObject, makeReport, makeSlotReport } from '../slot/testing/objects.ts'
import { triggers } from './triggers.ts'

const added = <T>(object: T): Change<T> => ({ type: 'added', object, initial: false })
const updated = <T>(old: T, object: T): Change<T> => ({ type: 'updated', old, object, initial: false })
const deleted = <T>(object: T): Change<T> => ({ type: 'deleted', old: object, object, initial: false })

const setOf = (name: string, namespace: string, checkpoint?: object): BackupPodSet =>
  makeObject({
    metadata: { name, namespace },
    spec: { replicas: 1, template: {}, ...(checkpoint && { checkpoint }) },
  })
const sets = { list: () => [setOf('memory', 'a', {}), setOf('plain', 'a'), setOf('other', 'b', {})] }

it('a set that ends is urgent: its agents must hear of it', () => {
  const set = setOf('web', 'a')
  const ending = { ...set, metadata: { ...set.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' } }
  expect(triggers.set(added(set))).toEqual([['a/web', { priority: 0 }]])
  expect(triggers.set(updated(set, ending))).toEqual([['a/web', { priority: 10 }]])
  expect(triggers.set(deleted(set))).toEqual([['a/web', { priority: 10 }]])
})

it('a pod concerns the sets that its label and its owner name, now or before; the loss of a primary is urgent', () => {
  const owner = {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    uid: 's',
    controller: true,
  }
  const podOf = (set: string | undefined, type: string) =>
    makePodObject('p', {
      metadata: {
        labels: { [labels.type]: type, ...(set !== undefined && { [labels.set]: set }) },
        ownerReferences: [{ ...owner, name: 'owner' }],
      },
    })
  const primary = podOf('web', 'primary')
  expect(triggers.pod(updated(podOf('web', 'hotbackup'), podOf('blue', 'hotbackup')))).toEqual(
    ['default/blue', 'default/owner', 'default/web'].map(key => [key, { priority: 0 }]),
  )
  expect(triggers.pod(deleted(podOf(undefined, 'hotbackup')))).toEqual([['default/owner', { priority: 0 }]])
  expect(triggers.pod(deleted(primary)).map(([, how]) => how?.priority)).toEqual([10, 10])
})

it('objects of a set and permissions of a namespace concern the sets that they name', () => {
  expect(
    triggers.labelled(added(makePodObject('x', { metadata: { labels: { [labels.set]: 'web' } } }))),
  ).toEqual([['default/web']])
  expect(triggers.labelled(added(makePodObject('x')))).toEqual([])
  expect(triggers.permission(added(makeObject({ metadata: { name: 'a' } })), sets)).toEqual([
    ['a/memory'],
    ['a/plain'],
  ])
})

it('of a report, progress can wait; what a node can do concerns every set that wants memory', () => {
  const reportOf = (generation: number, over: Partial<NodeReportStatus> = {}) =>
    makeReport('n1', { slots: [makeSlotReport({ generation })], ...over })
  const change = (over: Partial<NodeReportStatus>, generation = 1) =>
    triggers.report(updated(reportOf(1), reportOf(generation, over)), sets)
  expect(change({})).toEqual([])
  expect(change({}, 2)).toEqual([['default/bps', { afterMs: 2_000 }]])
  expect(change({ ready: false })).toEqual([['a/memory'], ['b/other']])
  expect(change({ disk: { bytes: 0, budget: 1, reason: 'DiskFull' } })).toEqual([
    ['default/bps', { afterMs: 2_000 }],
  ])
  expect(triggers.report(deleted(reportOf(1)), sets)).toEqual([
    ['default/bps', {}],
    ['a/memory'],
    ['b/other'],
  ])
})

it('a vote, or another voter, is urgent for the sets of the slots that it concerns', () => {
  const slot = makeSlotReport({ namespace: 'a', name: 'web-0' })
  const other = makeSlotReport({ namespace: 'a', name: 'blue-0' })
  const before = makeReport('n1', { slots: [slot, other] })
  const votes = (slots: readonly SlotReport[], metadata = before.metadata) =>
    triggers
      .report(updated(before, { ...makeReport('n1', { slots }), metadata }), { list: () => [] })
      .flatMap(([key, how]) => (how?.priority === 10 ? [key] : []))
  expect(votes([{ ...slot, silentTerm: 1 }, other])).toEqual(['a/web'])
  expect(votes([slot, { ...other, acknowledged: { term: 1, version: 2 } }])).toEqual(['a/blue'])
  expect(votes([{ ...slot, generation: 2 }, other, makeSlotReport({ name: 'new-0' })])).toEqual([])
  expect(votes([slot, other], { ...before.metadata, annotations: { [silencesAnnotation]: '1' } })).toEqual([
    'a/web',
    'a/blue',
  ])
})

it('a node that goes out of service, or comes back, is urgent for sets that want memory; other taints are not', () => {
  const node = (key: string) => ({
    metadata: { name: 'n1', uid: 'u', resourceVersion: '1' },
    spec: { taints: [{ key, effect: 'NoExecute' }] },
  })
  const seen = (before: string, after: string) => triggers.node(updated(node(before), node(after)), sets)
  const urgent = ['a/memory', 'b/other'].map(key => [key, { priority: 10 }])
  expect(seen('other', outOfService)).toEqual(urgent)
  expect(seen(outOfService, 'other')).toEqual(urgent)
  expect(seen('other', 'another')).toEqual([])
})
