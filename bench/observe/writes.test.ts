import { describe, expect, it } from 'vitest'
import type { Pod } from '../../src/kube/resources.ts'
import { heard, podOf } from './testing/pods.ts'
import { deletionAccepted, podWrites, statusWrites } from './writes.ts'

const known = (...pods: Pod[]) => new Map(pods.map(pod => [pod.metadata.uid, pod]))

describe('podWrites', () => {
  it('tells creations, relabellings and deletions from what kubelet and scheduler write', () => {
    const old = podOf('old', 'primary', {}, { slot: 0 })
    const hot = podOf('hot', 'hotbackup', {})
    const writes = podWrites(known(old, hot), [
      heard(1, 'MODIFIED', podOf('old', 'primary', {}, { slot: 0, leaving: true })),
      heard(2, 'MODIFIED', podOf('hot', 'primary', {}, { slot: 0 })),
      heard(3, 'ADDED', podOf('new', 'hotbackup', {})),
      heard(4, 'MODIFIED', podOf('new', 'hotbackup', { phase: 'Running' })),
      heard(5, 'MODIFIED', podOf('old', 'primary', { phase: 'Failed' }, { slot: 0, leaving: true })),
      heard(6, 'DELETED', podOf('old', 'primary', {}, { slot: 0, leaving: true })),
    ])
    expect(writes.map(({ type, at, pod }) => [type, at, pod.metadata.name])).toEqual([
      ['deleted', 1, 'old'],
      ['relabelled', 2, 'hot'],
      ['created', 3, 'new'],
    ])
  })

  it('counts a deletion without grace when the pod vanishes, and one with label and deletion as both', () => {
    const pod = podOf('a', 'primary', {})
    expect(podWrites(known(pod), [heard(1, 'DELETED', pod)]).map(({ type }) => type)).toEqual(['deleted'])
    expect(
      podWrites(known(pod), [heard(1, 'MODIFIED', podOf('a', 'retired', {}, { leaving: true }))]).map(
        ({ type }) => type,
      ),
    ).toEqual(['deleted', 'relabelled'])
  })
})

describe('deletionAccepted', () => {
  it('is the earlier of the answer and the event', () => {
    const leaving = heard(5, 'MODIFIED', podOf('a', 'primary', {}, { leaving: true }))
    const alive = heard(1, 'MODIFIED', podOf('a', 'primary', {}))
    expect(deletionAccepted(7, 'uid-a', [alive, leaving])).toBe(5)
    expect(deletionAccepted(3, 'uid-a', [alive, leaving])).toBe(3)
    expect(deletionAccepted(3, 'uid-b', [alive, leaving])).toBe(3)
  })
})

describe('statusWrites', () => {
  const set = (resourceVersion: string, generation: number) => ({
    metadata: { name: 'web', uid: 'u', resourceVersion, generation },
  })
  const event = (type: 'ADDED' | 'MODIFIED', object: ReturnType<typeof set>) => ({ at: 0, type, object })

  it('counts changes that are none of the spec', () => {
    const events = [
      event('MODIFIED', set('2', 2)),
      event('MODIFIED', set('3', 2)),
      event('MODIFIED', set('4', 2)),
    ]
    expect(statusWrites(new Map([['u', set('1', 1)]]), events)).toBe(2)
    expect(statusWrites(new Map(), [event('ADDED', set('1', 1)), event('MODIFIED', set('2', 1))])).toBe(1)
  })
})
