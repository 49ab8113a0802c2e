import { describe, expect, it } from 'vitest'
import { systemClock } from '../../kube/clock.ts'
import { makePodObject } from '../testing/objects.ts'
import { makeHolder, makeLease, stage } from '../testing/slots.ts'
import { goesBy, goneBy, replacedIn } from './slot-primary.ts'

describe('D8.gone: a primary whose pod was deleted by force', () => {
  const fence = {
    ...{ term: 1, version: 1, voters: ['API/1', 'n2/2'], timeoutMs: 3_000 },
    ...{ isArmed: true, isRevoked: false },
  } as const
  const holder = makeHolder('p', 0)
  const lease = makeLease(holder, { fence })
  const since = (_: string, isOpen: boolean) => (isOpen ? 1_000 : undefined)

  it('may run until its agent says that it has ended it', () => {
    expect(goneBy(lease, undefined, since)).toBe(19_000)
    expect(goneBy(lease, 'uid-of-another', since)).toBe(19_000)
    expect(goneBy(lease, holder.uid, since)).toBeUndefined()
  })

  it('counts as ended at once where it has no fence', () => {
    const unarmed = makeLease(holder, { fence: { ...fence, isArmed: false } })
    expect(goneBy(unarmed, undefined, since)).toBeUndefined()
    expect(goneBy(makeLease(holder), undefined, since)).toBeUndefined()
  })
})

describe('a called pod that is being deleted', () => {
  const deps = {
    ...{ clock: { ...systemClock, monotonic: () => 100_000 }, isDeleted: () => false },
    reports: { silentFor: () => 90_000 },
  }
  const since = (key: string, isOpen: boolean) => (isOpen && key.startsWith('going') ? 50_000 : undefined)
  const pod = makePodObject('h', {
    metadata: { deletionTimestamp: '2030-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 },
    spec: { nodeName: 'n' },
  })
  const by = (resuming: boolean) => goesBy(pod, stage({ understudy: true, resuming }), deps, since)

  it('D7.ending: may run until it is gone, if its agent has told that it resumes and has been silent since', () => {
    expect(by(true)).toBe(102_000)
  })

  it('has no app to stop otherwise', () => {
    expect(by(false)).toBeUndefined()
  })
})

describe('the containers of a primary', () => {
  const pod = { metadata: { name: 'p', uid: 'u', resourceVersion: '1' } }
  const lease = makeLease(makeHolder('p', 0))
  const named = { ...lease, containers: 'app=c://1,side=c://2' }

  it.each([
    ['are the same', named, { containers: 'app=c://1,side=c://2' }, 'No'],
    ['are not known', named, { containers: undefined }, 'No'],
    ['are the same but for one', named, { containers: 'app=c://1,side=c://3' }, 'Partly'],
    ['are all others', named, { containers: 'app=c://4,side=c://3' }, 'Wholly'],
    ['have not been restarted', lease, { containers: 'app=c://1', restarts: 1 }, 'No'],
    [
      'are a single one, and the kubelet has restarted it',
      lease,
      { containers: 'app=c://1', restarts: 2 },
      'Wholly',
    ],
    [
      'are two, and the kubelet has restarted at least one',
      lease,
      { containers: 'app=c://1,side=c://2', restarts: 2 },
      'Partly',
    ],
    ['are those that an agent names', named, { understudy: true, replaced: 'Partly' }, 'Partly'],
  ] as const)('%s', (_, its, on, expected) => {
    expect(replacedIn(pod, stage(on), its, 1)).toBe(expected)
  })
})
