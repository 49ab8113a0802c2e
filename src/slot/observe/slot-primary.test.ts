import { describe, expect, it } from 'vitest'
import { makeHolder, makeLease, stage } from '../testing/slots.ts'
import { goneBy, replacedIn } from './slot-primary.ts'

describe('D8.gone: a primary whose pod was deleted by force', () => {
  const fence = {
    ...{ term: 1, version: 1, voters: ['API/1', 'n2/2'], timeoutMs: 3_000 },
    ...{ isArmed: true, isRevoked: false },
  } as const
  const holder = makeHolder('p', 0)
  const lease = makeLease(holder, { fence })
  const since = (_: string, isOpen: boolean) => (isOpen ? 1_000 : undefined)

  it('may run until its agent says that it has ended it', () => {
    expect(goneBy(lease, undefined, since)).toBe(16_000)
    expect(goneBy(lease, 'uid-of-another', since)).toBe(16_000)
    expect(goneBy(lease, holder.uid, since)).toBeUndefined()
  })

  it('counts as ended at once where it has no fence', () => {
    const unarmed = makeLease(holder, { fence: { ...fence, isArmed: false } })
    expect(goneBy(unarmed, undefined, since)).toBeUndefined()
    expect(goneBy(makeLease(holder), undefined, since)).toBeUndefined()
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
