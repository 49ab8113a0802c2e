import { expect, it } from 'vitest'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { grantsOf } from './grants.ts'
import { stageOf } from './stage.ts'

it('a grant is over once its heir is gone, and the agent there says that it has ended it', () => {
  const heir = { uid: 'uid-h', node: 'n-h' }
  const lease = makeLease(makeHolder('p', 0), { grant: { number: 3, heir, isRevoked: true } })
  const { namespace, name, incarnation } = lease
  const grantWith = (ended: string | undefined, node = heir.node) => {
    const slot = { namespace, name, incarnation, role: 'source', generation: 1 } as const
    const word = { ...slot, grant: { closed: 3, used: 3 }, ...(ended !== undefined && { ended }) }
    const reports = { unheardFor: () => 0 }
    const deps = { reports, podByUid: () => undefined, stageOf, lostAfterMs: () => undefined }
    return grantsOf(lease, [{ node, slot: word }], deps).outstanding
  }
  expect(grantWith(undefined)).toEqual({ heir, isUsed: true })
  expect(grantWith('uid-p')).toEqual({ heir, isUsed: true })
  expect(grantWith(heir.uid)).toBeUndefined()
  // Another node cannot know it.
  expect(grantWith(heir.uid, 'n-x')).toBeDefined()
})

it('the word of a node that the Lease does not name counts for nothing', () => {
  const heir = { uid: 'uid-h', node: 'n-h' }
  const lease = makeLease(makeHolder('p', 0), {
    holders: ['n-h'],
    grant: { number: 3, heir, isRevoked: false },
  })
  const { namespace, name, incarnation } = lease
  const slot = { namespace, name, incarnation, role: 'holder', generation: 1 } as const
  const deps = {
    ...{ reports: { unheardFor: () => 0 }, podByUid: () => undefined },
    ...{ stageOf, lostAfterMs: () => undefined },
  }
  const numberBy = (node: string) =>
    grantsOf(lease, [{ node, slot: { ...slot, grant: { closed: 2 ** 52 } } }], deps).nextNumber
  // No agent takes a number beyond all bounds.
  expect(numberBy('n-x')).toBe(4)
  expect(numberBy('n-h')).toBe(2 ** 52 + 1)
})
