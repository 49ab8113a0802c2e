import { describe, expect, it } from 'vitest'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { goneBy } from './slot-primary.ts'

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
